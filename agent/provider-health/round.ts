/** The time that one round of checks has: a deadline for all, then a short grace for answers. */
import { DeadlineError } from '#agent/runtime/deadline.ts';
import type { Clock, Timer } from '#shared/clock.ts';

export interface Round {
  /** Aborts at the deadline, and when the round is stopped. */
  readonly signal: AbortSignal;
  /** Resolves a little after `signal` aborted: who has not answered by then is not waited for. */
  readonly late: Promise<void>;
  /** Ends it; no timer is left. */
  close(): void;
}

/** An aborted check is to answer at once; what it says of its targets is better than our guess. */
export const GRACE_MS = 1_000;

export function openRound(clock: Clock, timeoutMs: number, parent: AbortSignal): Round {
  const controller = new AbortController();
  const late = Promise.withResolvers<void>();
  let grace: Timer | undefined;
  const end = (reason: unknown) => {
    controller.abort(reason);
    grace ??= clock.setTimer(late.resolve, GRACE_MS);
  };
  const deadline = clock.setTimer(() => end(new DeadlineError(timeoutMs)), timeoutMs);
  const onStop = () => end(parent.reason);
  parent.addEventListener('abort', onStop, { once: true });
  return {
    signal: controller.signal,
    late: late.promise,
    close() {
      deadline.cancel();
      grace?.cancel();
      parent.removeEventListener('abort', onStop);
    },
  };
}
