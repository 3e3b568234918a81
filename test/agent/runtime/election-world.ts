/**
 * Processes that compete for a lease, and the server that keeps it, on one stepped clock: a process
 * can be frozen or killed, an answer can be slow or lost, the server can be away.
 */
import { type ElectionObserver, runElection } from '#agent/runtime/leader-election.ts';
import type { Leadership } from '#agent/runtime/leadership.ts';
import type { ElectionTiming, LeaseRecord, LeaseStore, StoredLease } from '#agent/runtime/lease.ts';
import { type Clock, type Random, sleepOn, type Timer } from '#shared/clock.ts';
import type { FakeClock } from '#test/fakes/clock.ts';

export const TIMING: ElectionTiming = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  retryPeriodMs: 2_000,
};

/** The clock of one process: its wall clock is off, and while it is frozen nothing fires. */
export class ProcessClock implements Clock {
  readonly #world: FakeClock;
  readonly #skewMs: number;
  readonly #late: (() => void)[] = [];
  #state: 'running' | 'frozen' | 'dead' = 'running';

  constructor(world: FakeClock, skewMs = 0) {
    this.#world = world;
    this.#skewMs = skewMs;
  }

  now(): number {
    return this.#world.now() + this.#skewMs;
  }

  monotonicMs(): number {
    return this.#world.monotonicMs();
  }

  setTimer(fn: () => void, delayMs: number): Timer {
    let cancelled = false;
    const fire = () => {
      if (cancelled || this.#state === 'dead') return;
      if (this.#state === 'frozen') this.#late.push(fire);
      else fn();
    };
    const timer = this.#world.setTimer(fire, delayMs);
    return {
      cancel() {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn((fn, ms) => this.setTimer(fn, ms), delayMs, signal);
  }

  get running(): boolean {
    return this.#state === 'running';
  }

  freeze(): void {
    if (this.#state === 'running') this.#state = 'frozen';
  }

  /** What was due meanwhile comes now, one after the other, in either order. */
  thaw(reversed = false): void {
    if (this.#state !== 'frozen') return;
    this.#state = 'running';
    const late = this.#late.splice(0);
    for (const fire of reversed ? late.reverse() : late) this.#world.setTimer(fire, 0);
  }

  kill(): void {
    this.#state = 'dead';
  }
}

/** How the way to the server and back is at the moment. */
export interface Network {
  /** Time of one way, drawn anew for each. */
  latencyMs(): number;
  /** Whether the answer to a request that was carried out never comes. */
  losesAnswer(): boolean;
  /** `refusing` answers with an error, `silent` not at all; nothing is carried out. */
  server(): 'up' | 'refusing' | 'silent';
}

export const FINE: Network = {
  latencyMs: () => 5,
  losesAnswer: () => false,
  server: () => 'up',
};

export class LeaseServer {
  network: Network = FINE;
  stored: StoredLease | undefined;
  requests = 0;
  /** Every record that was written. */
  readonly history: LeaseRecord[] = [];
  readonly #world: FakeClock;
  #versions = 0;

  constructor(world: FakeClock) {
    this.#world = world;
  }

  /** Writes as somebody from outside. */
  put(record: LeaseRecord): StoredLease {
    this.stored = { record, version: String(++this.#versions) };
    this.history.push(record);
    return this.stored;
  }

  storeOf(clock: Clock): LeaseStore {
    return {
      read: (signal) => this.#exchange(clock, signal, () => this.stored),
      create: (record, signal) =>
        this.#exchange(clock, signal, () =>
          this.stored === undefined ? this.put(record) : 'conflict',
        ),
      replace: (version, record, signal) =>
        this.#exchange(clock, signal, () =>
          this.stored?.version === version ? this.put(record) : 'conflict',
        ),
    };
  }

  /** A request that is on its way gets there, whatever becomes of who sent it. */
  #exchange<T>(clock: Clock, signal: AbortSignal, carryOut: () => T): Promise<T> {
    this.requests++;
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      const answer = (fn: () => void) => clock.setTimer(fn, this.network.latencyMs());
      this.#world.setTimer(() => {
        const state = this.network.server();
        if (state === 'refusing') answer(() => reject(new Error('the server is away')));
        if (state !== 'up') return;
        const result = carryOut();
        if (!this.network.losesAnswer()) answer(() => resolve(result));
      }, this.network.latencyMs());
    });
  }
}

export interface ElectorOptions {
  readonly world: FakeClock;
  readonly server: LeaseServer;
  readonly identity: string;
  readonly skewMs?: number;
  readonly random?: Random;
  readonly timing?: ElectionTiming;
  readonly lead?: (leadership: Leadership, clock: Clock) => Promise<void>;
}

export type Elector = ReturnType<typeof startElector>;

/** A process with an election in it. By default it leads until it is told to end. */
export function startElector(options: ElectorOptions) {
  const clock = new ProcessClock(options.world, options.skewMs);
  const stopping = new AbortController();
  const told: string[] = [];
  const observer: ElectionObserver = {
    becameLeader: (term) => told.push(`leads ${term}`),
    lost: (reason) => told.push(`lost: ${reason}`),
    released: () => told.push('released'),
    following: (holder) => told.push(`follows ${holder}`),
    failed: (_, failures) => told.push(`failed ${failures}`),
  };
  let leadership: Leadership | undefined;
  const lead = options.lead ?? (({ signal }) => untilAborted(signal));
  const result = runElection({
    store: options.server.storeOf(clock),
    identity: options.identity,
    timing: options.timing ?? TIMING,
    clock,
    random: options.random ?? (() => 0),
    observer,
    signal: stopping.signal,
    lead(given) {
      leadership = given;
      return lead(given, clock);
    },
  });
  const elector = {
    clock,
    told,
    result,
    /** `running`, `ended`, or the error. */
    outcome: 'running' as unknown,
    get leadership() {
      return leadership;
    },
    /** Whether it would act now. */
    get leads() {
      try {
        leadership?.assertHeld();
        return leadership !== undefined;
      } catch {
        return false;
      }
    },
    stop: () => stopping.abort(new Error('stopped')),
  };
  result.then(
    () => {
      elector.outcome = 'ended';
    },
    (error) => {
      elector.outcome = error;
    },
  );
  return elector;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
