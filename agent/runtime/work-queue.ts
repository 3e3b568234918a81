/**
 * The queue between notices and workers, with the semantics of client-go's workqueue: a key waits
 * at most once, is never handed to two workers at a time, and a key that is added while it is
 * being worked on is delivered again afterwards, so that no change is lost. Keys carry no data.
 */
import type { Clock, Random, Timer } from '#shared/clock.ts';
import { type BackoffPolicy, backoffDelayMs } from './backoff.ts';

/** What the queue tells about itself; implemented by telemetry. */
export interface QueueObserver {
  /** A key became ready that was not waiting before. */
  added(): void;
  /** A key was put back because its work failed. */
  retried(): void;
  /** Number of keys that are ready now. */
  depth(count: number): void;
  /** Time that a key was ready before a worker took it. */
  queued(durationMs: number): void;
  /** Time from taking a key to `done`. */
  worked(durationMs: number): void;
}

export interface WorkQueue {
  /** Marks `key` as ready; a no-op while it is ready already. */
  add(key: string): void;
  /** `add` after `delayMs`; of several pending delays of a key the earliest holds. */
  addAfter(key: string, delayMs: number): void;
  /**
   * `addAfter` with a delay that doubles with every call since the last `forget(key)`, and that is
   * no longer than `atMostMs` and no shorter than `atLeastMs`.
   */
  addRateLimited(key: string, atLeastMs?: number, atMostMs?: number): void;
  /** Ends the key's failure count; does not take it out of the queue. */
  forget(key: string): void;
  /** Next key; waits for one. Undefined when the queue is closed or `signal` aborts. */
  get(signal: AbortSignal): Promise<string | undefined>;
  /** Must follow every key that `get` gave, whatever came of it. */
  done(key: string): void;
  /** Keys that are ready, without those being worked on or delayed. */
  readonly size: number;
  /** Drops everything and ends every waiting `get`; later adds are ignored. */
  close(): void;
}

export interface WorkQueueDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly backoff?: BackoffPolicy;
  readonly observer?: QueueObserver;
}

/** Fast for a conflict that the next read resolves, slow for what stays broken. */
export const DEFAULT_BACKOFF: BackoffPolicy = { baseMs: 100, maxMs: 300_000 };

export const SILENT_QUEUE_OBSERVER: QueueObserver = {
  added() {},
  retried() {},
  depth() {},
  queued() {},
  worked() {},
};

interface Delayed {
  readonly dueMs: number;
  readonly timer: Timer;
}

export function createWorkQueue(deps: WorkQueueDeps): WorkQueue {
  return new KeyQueue(deps);
}

class KeyQueue implements WorkQueue {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #backoff: BackoffPolicy;
  readonly #observer: QueueObserver;
  /** Ready keys in order of arrival, with the time since which they are ready. */
  readonly #ready = new Map<string, number>();
  /** Keys with a worker, with the time at which it took them. */
  readonly #processing = new Map<string, number>();
  /** Keys that were added while being worked on. */
  readonly #again = new Set<string>();
  readonly #delayed = new Map<string, Delayed>();
  readonly #failures = new Map<string, number>();
  readonly #waiting = new Set<(key: string | undefined) => void>();
  #closed = false;

  constructor(deps: WorkQueueDeps) {
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#backoff = deps.backoff ?? DEFAULT_BACKOFF;
    this.#observer = deps.observer ?? SILENT_QUEUE_OBSERVER;
  }

  get size(): number {
    return this.#ready.size;
  }

  add(key: string): void {
    if (this.#closed || this.#ready.has(key) || this.#again.has(key)) return;
    this.#observer.added();
    if (this.#processing.has(key)) this.#again.add(key);
    else this.#makeReady(key);
  }

  addAfter(key: string, delayMs: number): void {
    if (this.#closed) return;
    if (delayMs <= 0) {
      this.add(key);
      return;
    }
    const dueMs = this.#clock.monotonicMs() + delayMs;
    const pending = this.#delayed.get(key);
    if (pending !== undefined && pending.dueMs <= dueMs) return;
    pending?.timer.cancel();
    const timer = this.#clock.setTimer(() => {
      this.#delayed.delete(key);
      this.add(key);
    }, delayMs);
    this.#delayed.set(key, { dueMs, timer });
  }

  addRateLimited(key: string, atLeastMs = 0, atMostMs = Number.POSITIVE_INFINITY): void {
    if (this.#closed) return;
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    this.#observer.retried();
    const policy = { ...this.#backoff, maxMs: Math.min(this.#backoff.maxMs, atMostMs) };
    const delayMs = backoffDelayMs(policy, failures, this.#random);
    this.addAfter(key, Math.max(delayMs, atLeastMs));
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }

  get(signal: AbortSignal): Promise<string | undefined> {
    if (this.#closed || signal.aborted) return Promise.resolve(undefined);
    const next = this.#take();
    if (next !== undefined) return Promise.resolve(next);
    return new Promise((resolve) => {
      const settle = (key: string | undefined) => {
        this.#waiting.delete(settle);
        signal.removeEventListener('abort', onAbort);
        resolve(key);
      };
      const onAbort = () => settle(undefined);
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(settle);
    });
  }

  done(key: string): void {
    const sinceMs = this.#processing.get(key);
    if (sinceMs === undefined) return;
    this.#processing.delete(key);
    this.#observer.worked(this.#clock.monotonicMs() - sinceMs);
    if (this.#again.delete(key) && !this.#closed) this.#makeReady(key);
  }

  close(): void {
    this.#closed = true;
    for (const { timer } of this.#delayed.values()) timer.cancel();
    this.#delayed.clear();
    this.#ready.clear();
    this.#again.clear();
    this.#failures.clear();
    this.#observer.depth(0);
    for (const settle of [...this.#waiting]) settle(undefined);
  }

  #makeReady(key: string): void {
    this.#ready.set(key, this.#clock.monotonicMs());
    const [waiter] = this.#waiting;
    // Hand over in the same turn: between a wake-up and its `get` another worker could take it.
    if (waiter !== undefined) waiter(this.#take());
    else this.#observer.depth(this.#ready.size);
  }

  #take(): string | undefined {
    const [first] = this.#ready;
    if (first === undefined) return undefined;
    const [key, sinceMs] = first;
    const nowMs = this.#clock.monotonicMs();
    this.#ready.delete(key);
    this.#processing.set(key, nowMs);
    this.#observer.queued(nowMs - sinceMs);
    this.#observer.depth(this.#ready.size);
    return key;
  }
}
