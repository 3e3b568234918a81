/**
 * How fast machines are made: how soon again for a Proxy whose machines die young, how many a
 * minute at one provider, and how soon after a create that failed. In memory alone and bounded: a
 * restart forgets it, which costs a few attempts that come early and nothing else. Knows no
 * cluster; all times are monotonic milliseconds that the caller hands in.
 */
import type { ProviderErrorClass } from '#agent/providers/errors.ts';

export interface PacingOptions {
  /** Machines begun within any minute at one provider that sets no limit of its own. */
  readonly creationsPerMinute: number;
  /** Wait after the second death in a row; each further one doubles it. */
  readonly crashDelayMs: number;
  readonly crashDelayMsMax: number;
  /** A machine that has run this long did not die young. */
  readonly provenMs: number;
  /** Least wait after a create that failed; each further one doubles it. */
  readonly failureDelayMs: number;
  readonly failureDelayMsMax: number;
}

/**
 * The delays after failures are the least that the work queue's backoff (half fixed, half random)
 * gives: they hold back a Proxy that a notice wakes early, and never one whose turn it is.
 */
export const DEFAULT_PACING: PacingOptions = {
  creationsPerMinute: 60,
  crashDelayMs: 10_000,
  crashDelayMsMax: 300_000,
  provenMs: 600_000,
  failureDelayMs: 50,
  failureDelayMsMax: 150_000,
};

/** Proxies remembered; beyond it the ones longest unchanged are forgotten. */
const PROXIES_MAX = 20_000;
const MINUTE_MS = 60_000;
/** Doublings beyond this cannot matter and would lose the number's precision. */
const EXPONENT_MAX = 40;

/** Why a machine is not made yet. */
export interface Wait {
  readonly waitMs: number;
  /** For a person; the same at every look, so that it is written once. */
  readonly message: string;
}

export interface Pacing {
  /** A machine of that spec died after having run for `ranMs`, 0 when it never ran. */
  died(key: string, at: { specHash: string; ranMs: number; nowMs: number }): void;
  /** The Proxy has no machine, known for certain: the next create makes one. */
  vacant(key: string): void;
  /** Whether the next create is certain to make a machine, not to find one. */
  isVacant(key: string): boolean;
  /** The wait that the deaths of earlier machines of that spec demand. */
  crashWait(key: string, specHash: string, nowMs: number): Wait | undefined;
  /**
   * Takes one of the provider's creations; a wait when the minute is used up. The place in the
   * line is kept for the Proxy, so that it waits once.
   */
  takeCreation(
    key: string,
    provider: { readonly name: string; readonly creationsPerMinute?: number },
    nowMs: number,
  ): Wait | undefined;
  /** Milliseconds until a create of this intent may be tried again; 0 when at once. */
  retryInMs(key: string, intent: string, nowMs: number): number;
  /** A create of the intent failed; `retryMs` is the wait after a refusal for want of quota. */
  failed(
    key: string,
    at: { intent: string; errorClass: ProviderErrorClass; retryMs: number; nowMs: number },
  ): void;
  /** A create was answered. */
  created(key: string): void;
  /** The Proxy is gone. */
  forget(key: string): void;
}

interface Deaths {
  readonly specHash: string;
  readonly count: number;
  readonly firstMs: number;
  readonly lastMs: number;
}

interface Failures {
  readonly intent: string;
  readonly count: number;
  readonly notBeforeMs: number;
}

interface Known {
  readonly vacant?: boolean;
  readonly deaths?: Deaths;
  readonly failures?: Failures;
  /** When the Proxy may make its machine, at which provider. */
  readonly slot?: { readonly provider: string; readonly atMs: number };
}

export function createPacing(options: PacingOptions = DEFAULT_PACING): Pacing {
  const proxies = new Map<string, Known>();
  /** Times of the last creations of each provider, those to come included; oldest first. */
  const slots = new Map<string, number[]>();

  const known = (key: string): Known => proxies.get(key) ?? {};
  function learn(key: string, next: Known): void {
    proxies.delete(key);
    proxies.set(key, next);
    if (proxies.size <= PROXIES_MAX) return;
    const [oldest] = proxies.keys();
    if (oldest !== undefined) proxies.delete(oldest);
  }

  function nextSlotMs(provider: string, limit: number, nowMs: number): number {
    const taken = slots.get(provider) ?? [];
    // One that was raised or lowered meanwhile holds from now on.
    const oldest = taken.at(-limit);
    const atMs = oldest === undefined ? nowMs : Math.max(nowMs, oldest + MINUTE_MS);
    slots.set(provider, [...taken.filter((each) => each > nowMs - MINUTE_MS), atMs]);
    return atMs;
  }

  return {
    died(key, { specHash, ranMs, nowMs }) {
      const { deaths, ...rest } = known(key);
      if (ranMs >= options.provenMs) {
        learn(key, rest);
        return;
      }
      const before = deaths?.specHash === specHash ? deaths : { count: 0, firstMs: nowMs };
      const { count, firstMs } = before;
      learn(key, { ...rest, deaths: { specHash, count: count + 1, firstMs, lastMs: nowMs } });
    },
    vacant: (key) => learn(key, { ...known(key), vacant: true }),
    isVacant: (key) => known(key).vacant === true,
    crashWait(key, specHash, nowMs) {
      const { deaths } = known(key);
      if (deaths?.specHash !== specHash || deaths.count < 2) return undefined;
      const delayMs = doubled(options.crashDelayMs, deaths.count - 2, options.crashDelayMsMax);
      const waitMs = deaths.lastMs + delayMs - nowMs;
      return waitMs > 0 ? { waitMs, message: crashMessage(deaths, delayMs) } : undefined;
    },
    takeCreation(key, { name: provider, creationsPerMinute }, nowMs) {
      const { slot, ...rest } = known(key);
      const limit = creationsPerMinute ?? options.creationsPerMinute;
      const atMs = slot?.provider === provider ? slot.atMs : nextSlotMs(provider, limit, nowMs);
      const waitMs = atMs - nowMs;
      if (waitMs <= 0) {
        learn(key, rest);
        return undefined;
      }
      learn(key, { ...rest, slot: { provider, atMs } });
      const message =
        `throttled: at most ${limit} instances a minute ` + `are created at provider "${provider}"`;
      return { waitMs, message };
    },
    retryInMs(key, intent, nowMs) {
      const { failures } = known(key);
      return failures?.intent === intent ? Math.max(failures.notBeforeMs - nowMs, 0) : 0;
    },
    failed(key, { intent, errorClass, retryMs, nowMs }) {
      const { failures: before, vacant: _, ...rest } = known(key);
      const count = before?.intent === intent ? before.count + 1 : 1;
      const { failureDelayMs, failureDelayMsMax } = options;
      const delayMs =
        errorClass === 'QuotaExceeded'
          ? retryMs
          : doubled(failureDelayMs, count - 1, failureDelayMsMax);
      learn(key, { ...rest, failures: { intent, count, notBeforeMs: nowMs + delayMs } });
    },
    created(key) {
      const { deaths } = known(key);
      if (deaths === undefined) proxies.delete(key);
      else learn(key, { deaths });
    },
    forget: (key) => void proxies.delete(key),
  };
}

function doubled(baseMs: number, times: number, maxMs: number): number {
  return Math.min(baseMs * 2 ** Math.min(times, EXPONENT_MAX), maxMs);
}

function crashMessage({ count, firstMs, lastMs }: Deaths, delayMs: number): string {
  const within = `${Math.max(Math.ceil((lastMs - firstMs) / 1000), 1)} s`;
  return (
    `waiting ${delayMs / 1000} s before the next attempt: ` +
    `${count} instances died within ${within}`
  );
}
