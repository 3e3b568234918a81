/**
 * The brake on replacements: when most machines of a provider turn unhealthy at once, it is more
 * likely the network, the probes or the provider's API than the machines, and replacing them all
 * would make an outage out of it. Counts are kept for each provider and change with each
 * observation, so that no decision looks at the fleet. In memory alone; times are monotonic
 * milliseconds. It remembers one entry for each Proxy there is.
 */

/** What holding replacements back tells; implemented by telemetry. */
export interface BrakeObserver {
  /** So many of the provider's machines turned unhealthy within a minute. */
  braked(provider: string, unhealthy: number, machines: number): void;
  /** Replacements go on, after so long. */
  released(provider: string, why: 'recovered' | 'timed-out', heldMs: number): void;
  /** Replacements that wait at the provider now. */
  held(provider: string, replacements: number): void;
}

export const SILENT_BRAKE_OBSERVER: BrakeObserver = { braked() {}, released() {}, held() {} };

/** Time within which machines must turn unhealthy to be taken for one failure. */
const WINDOW_MS = 60_000;
/** So many may turn at once, whatever share of the fleet they are. */
const TURNED_MAX = 3;
/** Whatever it is that lasts longer is not waited out. */
export const HOLD_MS_MAX = 600_000;

export interface Brake {
  /** The Proxy's machine runs and is well. */
  well(key: string, provider: string, nowMs: number): void;
  /** It is unhealthy, by its probes or by its provider, and has been for `sinceMs` milliseconds. */
  sick(key: string, provider: string, at: { sinceMs: number; nowMs: number }): void;
  /** No machine runs, by nobody's failure; one that was sick counts until its successor is well. */
  idle(key: string): void;
  /** The Proxy is gone, or is to be. */
  forget(key: string, nowMs: number): void;
  /** Why a replacement that nobody asked for has to wait now; `isNew` once for each wait. */
  hold(
    key: string,
    provider: string,
    nowMs: number,
  ): { readonly message: string; readonly isNew: boolean } | undefined;
}

interface Fleet {
  /** Whether the machine of each Proxy is sick. */
  readonly machines: Map<string, boolean>;
  sick: number;
  /** When sick machines turned, the earliest first. */
  readonly turned: Map<string, number>;
  /** Proxies whose replacement waits. */
  readonly held: Set<string>;
  braked: { readonly sinceMs: number; readonly message: string } | undefined;
}

export function createBrake(observer: BrakeObserver = SILENT_BRAKE_OBSERVER): Brake {
  return new FleetBrake(observer);
}

class FleetBrake implements Brake {
  readonly #observer: BrakeObserver;
  readonly #fleets = new Map<string, Fleet>();
  readonly #providerOf = new Map<string, string>();

  constructor(observer: BrakeObserver) {
    this.#observer = observer;
  }

  well(key: string, provider: string, nowMs: number): void {
    const fleet = this.#join(key, provider, nowMs);
    if (fleet.machines.get(key) === true) fleet.sick--;
    fleet.machines.set(key, false);
    fleet.turned.delete(key);
    this.#unhold(fleet, key, provider);
    this.#releaseIfDue(fleet, provider, nowMs);
  }

  /**
   * One that is sick when it is first met turned before this process looked: it counts as turning
   * now, so that a change of leader amid a failure does not let the brake go.
   */
  sick(key: string, provider: string, { sinceMs, nowMs }: { sinceMs: number; nowMs: number }) {
    const fleet = this.#join(key, provider, nowMs);
    const before = fleet.machines.get(key);
    if (before === true) return;
    fleet.machines.set(key, true);
    fleet.sick++;
    if (before === undefined && sinceMs >= HOLD_MS_MAX) return;
    fleet.turned.set(key, nowMs);
    this.#brakeIfDue(fleet, provider, nowMs);
  }

  idle(key: string): void {
    const provider = this.#providerOf.get(key);
    const fleet = provider === undefined ? undefined : this.#fleets.get(provider);
    if (provider === undefined || fleet === undefined) return;
    if (fleet.machines.get(key) === false) fleet.machines.delete(key);
    this.#unhold(fleet, key, provider);
  }

  forget(key: string, nowMs: number): void {
    const provider = this.#providerOf.get(key);
    const fleet = provider === undefined ? undefined : this.#fleets.get(provider);
    if (provider === undefined || fleet === undefined) return;
    this.#providerOf.delete(key);
    if (fleet.machines.get(key) === true) fleet.sick--;
    fleet.machines.delete(key);
    fleet.turned.delete(key);
    this.#unhold(fleet, key, provider);
    this.#releaseIfDue(fleet, provider, nowMs);
    if (fleet.machines.size === 0) this.#fleets.delete(provider);
  }

  hold(key: string, provider: string, nowMs: number) {
    const fleet = this.#join(key, provider, nowMs);
    this.#releaseIfDue(fleet, provider, nowMs);
    if (fleet.braked === undefined) return undefined;
    const isNew = !fleet.held.has(key);
    if (isNew) {
      fleet.held.add(key);
      this.#observer.held(provider, fleet.held.size);
    }
    return { message: fleet.braked.message, isNew };
  }

  #join(key: string, provider: string, nowMs: number): Fleet {
    if (this.#providerOf.get(key) !== provider) this.forget(key, nowMs);
    this.#providerOf.set(key, provider);
    const known = this.#fleets.get(provider);
    if (known !== undefined) return known;
    const fleet: Fleet = {
      machines: new Map(),
      sick: 0,
      turned: new Map(),
      held: new Set(),
      braked: undefined,
    };
    this.#fleets.set(provider, fleet);
    return fleet;
  }

  #brakeIfDue(fleet: Fleet, provider: string, nowMs: number): void {
    for (const [key, atMs] of fleet.turned) {
      if (nowMs - atMs < WINDOW_MS) break;
      fleet.turned.delete(key);
    }
    const turned = fleet.turned.size;
    const machines = fleet.machines.size;
    if (fleet.braked !== undefined || turned <= TURNED_MAX || turned * 2 <= machines) return;
    const message =
      `its replacement is held, since ${turned} of ${machines} instances at provider ` +
      `"${provider}" turned unhealthy within a minute, which hardly comes from the instances`;
    fleet.braked = { sinceMs: nowMs, message };
    this.#observer.braked(provider, turned, machines);
  }

  #releaseIfDue(fleet: Fleet, provider: string, nowMs: number): void {
    if (fleet.braked === undefined) return;
    const heldMs = nowMs - fleet.braked.sinceMs;
    const recovered = fleet.sick * 2 <= fleet.machines.size;
    if (!recovered && heldMs < HOLD_MS_MAX) return;
    fleet.braked = undefined;
    fleet.turned.clear();
    fleet.held.clear();
    this.#observer.held(provider, 0);
    this.#observer.released(provider, recovered ? 'recovered' : 'timed-out', heldMs);
  }

  #unhold(fleet: Fleet, key: string, provider: string): void {
    if (fleet.held.delete(key)) this.#observer.held(provider, fleet.held.size);
  }
}
