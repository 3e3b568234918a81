/**
 * The one place where time enters the system. Everything else takes a `Clock` (or a `nowMs`
 * argument) from outside, so that tests step time instead of waiting for it.
 */

/** A pending timer; `cancel` is idempotent and safe after it fired. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Wall-clock time in milliseconds since the epoch; may jump. */
  now(): number;
  /** Monotonic milliseconds from an arbitrary start; for durations and deadlines. */
  monotonicMs(): number;
  /** Calls `fn` once after `delayMs`; never synchronously. */
  setTimer(fn: () => void, delayMs: number): Timer;
  /** Resolves after `delayMs`; rejects at once with `signal.reason` when aborted. */
  sleep(delayMs: number, signal?: AbortSignal): Promise<void>;
}

/** Uniform random numbers in [0, 1). */
export type Random = () => number;

/** Longest delay that `setTimeout` takes; a longer one would fire at once. */
const TIMER_DELAY_MS_MAX = 2 ** 31 - 1;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: startTimer,
  sleep: (delayMs, signal) => sleepOn(startTimer, delayMs, signal),
};

function startTimer(fn: () => void, delayMs: number): Timer {
  const handle = setTimeout(fn, Math.min(Math.max(delayMs, 0), TIMER_DELAY_MS_MAX));
  return { cancel: () => clearTimeout(handle) };
}

/** `sleep` in terms of `setTimer`; shared with the stepped clock of the tests. */
export function sleepOn(
  setTimer: Clock['setTimer'],
  delayMs: number,
  signal?: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = setTimer(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, delayMs);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
