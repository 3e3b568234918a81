/**
 * The health engine: probes every proxy through itself on its own schedule and keeps a verdict for
 * each. It reads the cache level by level (a lost event costs at most one sync interval), owns the
 * state of health, and tells others only that a key is worth a look.
 */
import type { Clock, Random, Timer } from '#shared/clock.ts';
import type { ProbeTarget } from './targets.ts';
import { type HealthState, initialState, type ProbeResult, record } from './verdict.ts';
import type { Verdict, VerdictReader } from './verdict-reader.ts';

/** Probes that run at once; 32 keep 1,000 proxies at 10 s going with room to spare. */
const CONCURRENCY_DEFAULT = 32;
/** How often the cache is compared with what is probed. */
const SYNC_INTERVAL_MS_DEFAULT = 1_000;

/** What telemetry learns of every probe, those that change no verdict included. */
export interface ProbeObserver {
  /** `durationMs` is the time of the whole probe, at most the target's timeout. */
  probed(key: string, result: ProbeResult, durationMs: number): void;
  /** The proxy is no longer probed; what was counted for it can go. */
  forgotten(key: string): void;
}

export interface TargetSource {
  /** Every target that there is at present. */
  list(): Iterable<ProbeTarget>;
  /** The target of one key, or undefined when it is not to be probed. */
  get(key: string): ProbeTarget | undefined;
}

export type Probe = (target: ProbeTarget, signal: AbortSignal) => Promise<ProbeResult>;

export interface HealthEngineDeps {
  readonly targets: TargetSource;
  /** Never rejects but when aborted; keeps the target's timeout by itself. */
  readonly probe: Probe;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer?: ProbeObserver;
  /** Called with the key whose verdict is worth a look; must not throw. */
  readonly notify: (key: string) => void;
}

export interface HealthEngineOptions {
  readonly concurrency?: number;
  readonly syncIntervalMs?: number;
}

export interface HealthEngine extends VerdictReader {
  /** Probes until `signal` aborts; resolves when no probe runs any more. Call once. */
  run(signal: AbortSignal): Promise<void>;
  /** Looks at one key at once, without waiting for the next sync. */
  refresh(key: string): void;
}

interface Tracked {
  target: ProbeTarget;
  state: HealthState;
  phase: 'waiting' | 'ready' | 'probing';
  timer?: Timer;
  /** Monotonic; start of the last probe, undefined before the first. */
  startedMs?: number;
}

export function createHealthEngine(
  deps: HealthEngineDeps,
  options: HealthEngineOptions = {},
): HealthEngine {
  return new Engine(deps, options);
}

class Engine implements HealthEngine {
  readonly #deps: HealthEngineDeps;
  readonly #concurrency: number;
  readonly #syncIntervalMs: number;
  readonly #tracked = new Map<string, Tracked>();
  /** Due, in order, waiting for one of the `concurrency` places. */
  readonly #ready = new Set<Tracked>();
  readonly #running = new Set<Promise<void>>();
  #signal: AbortSignal | undefined;

  constructor(deps: HealthEngineDeps, options: HealthEngineOptions) {
    this.#deps = deps;
    this.#concurrency = options.concurrency ?? CONCURRENCY_DEFAULT;
    this.#syncIntervalMs = options.syncIntervalMs ?? SYNC_INTERVAL_MS_DEFAULT;
  }

  verdict(key: string): Verdict | undefined {
    return this.#tracked.get(key)?.state.verdict;
  }

  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    try {
      while (!signal.aborted) {
        this.#sync();
        await this.#deps.clock.sleep(this.#syncIntervalMs, signal).catch(() => undefined);
      }
    } finally {
      for (const tracked of this.#tracked.values()) tracked.timer?.cancel();
      this.#ready.clear();
      await Promise.allSettled(this.#running);
    }
  }

  refresh(key: string): void {
    if (this.#signal === undefined || this.#signal.aborted) return;
    const target = this.#deps.targets.get(key);
    if (target === undefined) this.#forget(key);
    else this.#observe(target);
  }

  #sync(): void {
    const present = new Set<string>();
    for (const target of this.#deps.targets.list()) {
      present.add(target.key);
      this.#observe(target);
    }
    for (const key of this.#tracked.keys()) if (!present.has(key)) this.#forget(key);
  }

  #observe(target: ProbeTarget): void {
    const tracked = this.#tracked.get(target.key);
    if (tracked === undefined) {
      this.#begin(target, initialState(target.seed));
      return;
    }
    const before = tracked.target;
    if (before.identity !== target.identity) {
      this.#drop(tracked);
      this.#begin(target, initialState());
      // Whoever shows the old verdict is to take it back.
      if (tracked.state.verdict.healthy !== null) this.#deps.notify(target.key);
      return;
    }
    tracked.target = target;
    if (asksTheSame(before, target)) {
      if (before.intervalMs !== target.intervalMs) this.#reschedule(tracked);
      return;
    }
    // Another question: what the old one found in a row does not count for it.
    tracked.state = { ...tracked.state, run: null };
    if (tracked.phase === 'waiting') this.#enqueue(tracked);
  }

  /** A proxy that nobody has probed yet is probed at once; known ones spread over an interval. */
  #begin(target: ProbeTarget, state: HealthState): void {
    const tracked: Tracked = { target, state, phase: 'waiting' };
    this.#tracked.set(target.key, tracked);
    if (state.verdict.healthy === null) this.#enqueue(tracked);
    else this.#wait(tracked, this.#deps.random() * target.intervalMs);
  }

  #forget(key: string): void {
    const tracked = this.#tracked.get(key);
    if (tracked === undefined) return;
    this.#drop(tracked);
    this.#deps.observer?.forgotten(key);
  }

  #drop(tracked: Tracked): void {
    tracked.timer?.cancel();
    this.#ready.delete(tracked);
    this.#tracked.delete(tracked.target.key);
  }

  #reschedule(tracked: Tracked): void {
    if (tracked.phase !== 'waiting') return;
    tracked.timer?.cancel();
    this.#wait(tracked, this.#untilNextMs(tracked));
  }

  #wait(tracked: Tracked, delayMs: number): void {
    tracked.phase = 'waiting';
    tracked.timer = this.#deps.clock.setTimer(() => this.#enqueue(tracked), delayMs);
  }

  #enqueue(tracked: Tracked): void {
    tracked.timer?.cancel();
    tracked.phase = 'ready';
    this.#ready.add(tracked);
    this.#fill();
  }

  #fill(): void {
    const signal = this.#signal;
    if (signal === undefined || signal.aborted) return;
    for (const tracked of this.#ready) {
      if (this.#running.size >= this.#concurrency) return;
      this.#ready.delete(tracked);
      const running = this.#probe(tracked, signal).finally(() => {
        this.#running.delete(running);
        this.#fill();
      });
      this.#running.add(running);
    }
  }

  async #probe(tracked: Tracked, signal: AbortSignal): Promise<void> {
    const { clock, probe, observer } = this.#deps;
    const { target } = tracked;
    tracked.phase = 'probing';
    tracked.startedMs = clock.monotonicMs();
    const result = await probe(target, signal).catch(unexpected);
    // Stopped, pruned or another machine by now: the answer is on something that is gone.
    if (signal.aborted || this.#tracked.get(target.key) !== tracked) return;
    observer?.probed(target.key, result, clock.monotonicMs() - tracked.startedMs);
    if (asksTheSame(target, tracked.target)) {
      this.#record(tracked, result);
      this.#wait(tracked, this.#untilNextMs(tracked));
    } else this.#enqueue(tracked);
  }

  #record(tracked: Tracked, result: ProbeResult): void {
    const recorded = record(tracked.state, result, tracked.target, this.#deps.clock.now());
    tracked.state = recorded.state;
    if (recorded.notify) this.#deps.notify(tracked.target.key);
  }

  /** Intervals count from start to start; a probe that outlasts its own is followed at once. */
  #untilNextMs(tracked: Tracked): number {
    const elapsedMs = this.#deps.clock.monotonicMs() - (tracked.startedMs ?? 0);
    const { intervalMs } = tracked.target;
    // Never probed (its first probe waits for its turn): spread again over the new interval.
    if (tracked.startedMs === undefined) return this.#deps.random() * intervalMs;
    return Math.max(intervalMs - elapsedMs, 0);
  }
}

/** Whether a probe of `a` answers what a probe of `b` would ask. */
function asksTheSame(a: ProbeTarget, b: ProbeTarget): boolean {
  return (
    a.identity === b.identity &&
    a.url === b.url &&
    a.expectedStatus === b.expectedStatus &&
    a.credentials?.username === b.credentials?.username &&
    a.credentials?.password === b.credentials?.password
  );
}

/** `probe` does not reject by its contract; a bug in it must not end the schedule of a proxy. */
function unexpected(): ProbeResult {
  return {
    ok: false,
    reason: 'ProbeFailed',
    message: 'the probe itself failed unexpectedly',
    latencyMillis: 0,
  };
}
