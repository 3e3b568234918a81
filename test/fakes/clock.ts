/** A clock that moves only when a test says so. */
import { type Clock, sleepOn, type Timer } from '#shared/clock.ts';

interface PendingTimer {
  readonly dueMs: number;
  readonly order: number;
  readonly fn: () => void;
}

/** Time starts at `startMs` (2026-01-01 by default) and advances by `advance`. */
export class FakeClock implements Clock {
  #nowMs: number;
  #order = 0;
  readonly #pending = new Set<PendingTimer>();

  constructor(startMs: number = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  setTimer(fn: () => void, delayMs: number): Timer {
    const timer = { dueMs: this.#nowMs + Math.max(delayMs, 0), order: this.#order++, fn };
    this.#pending.add(timer);
    return { cancel: () => void this.#pending.delete(timer) };
  }

  sleep(delayMs: number, signal?: AbortSignal): Promise<void> {
    return sleepOn((fn, ms) => this.setTimer(fn, ms), delayMs, signal);
  }

  /** How many timers wait; a stopped component leaves none. */
  get pendingTimers(): number {
    return this.#pending.size;
  }

  /** Milliseconds until the next timer, or undefined when none waits. */
  get nextTimerMs(): number | undefined {
    const next = this.#next(Number.POSITIVE_INFINITY);
    return next === undefined ? undefined : next.dueMs - this.#nowMs;
  }

  /** Moves time on, firing due timers in order and letting promises settle after each. */
  async advance(ms: number): Promise<void> {
    const targetMs = this.#nowMs + ms;
    await settle();
    for (let next = this.#next(targetMs); next !== undefined; next = this.#next(targetMs)) {
      this.#nowMs = Math.max(this.#nowMs, next.dueMs);
      this.#pending.delete(next);
      next.fn();
      await settle();
    }
    this.#nowMs = targetMs;
    await settle();
  }

  #next(untilMs: number): PendingTimer | undefined {
    let best: PendingTimer | undefined;
    for (const timer of this.#pending) {
      if (timer.dueMs > untilMs) continue;
      const earlier =
        best === undefined ||
        timer.dueMs < best.dueMs ||
        (timer.dueMs === best.dueMs && timer.order < best.order);
      if (earlier) best = timer;
    }
    return best;
  }
}

/** Lets every promise that is already resolvable run its continuations. */
export async function settle(turns = 20): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve();
}
