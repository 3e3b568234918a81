/** Deadlines on the injected clock, joined with the caller's own signal. */
import type { Clock } from '#shared/clock.ts';

/** Why a call that took too long was aborted. */
export class DeadlineError extends Error {
  override readonly name = 'DeadlineError';
  readonly timeoutMs: number;

  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`);
    this.timeoutMs = timeoutMs;
  }
}

/**
 * Runs `call` with a signal that aborts when `parent` does, or with a `DeadlineError` after
 * `timeoutMs`. The call itself must honour the signal; nothing is left running behind its back.
 */
export async function withDeadline<T>(
  clock: Clock,
  timeoutMs: number,
  parent: AbortSignal | undefined,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  parent?.throwIfAborted();
  const controller = new AbortController();
  const onAbort = () => controller.abort(parent?.reason);
  parent?.addEventListener('abort', onAbort, { once: true });
  const timer = clock.setTimer(() => controller.abort(new DeadlineError(timeoutMs)), timeoutMs);
  try {
    return await call(controller.signal);
  } catch (error) {
    // Libraries wrap or rename what aborted them; the reason says why it really ended.
    if (controller.signal.aborted) throw controller.signal.reason;
    throw error;
  } finally {
    timer.cancel();
    parent?.removeEventListener('abort', onAbort);
  }
}

/** Sleeps like `clock.sleep`, but resolves instead of rejecting when `signal` aborts. */
export async function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await clock.sleep(delayMs, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}

/** Resolves when `signal` aborts; at once when it has. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** As `promise`, or rejects with the signal's reason when that comes first; the work itself goes on. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
