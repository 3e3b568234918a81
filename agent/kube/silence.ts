/** The end of a watch that says nothing: a half-open connection never tells by itself. */
import type { Clock, Timer } from '#shared/clock.ts';

/**
 * Without a line for this long a watch counts as dead, and the next one resumes where it ended.
 * Below a minute, in which a dead one must be noticed; bookmarks come about once a minute, so a
 * watch in which nothing happens is re-established as often, which costs one request.
 */
export const WATCH_SILENCE_MS = 50_000;

export interface SilenceTimer {
  /** Aborts with the parent, or when nothing restarts the timer in time. */
  readonly signal: AbortSignal;
  /** Whether it was the silence that aborted. */
  readonly fired: boolean;
  /** Called at each sign of life; the first call starts the timer. */
  restart(): void;
  stop(): void;
}

export function createSilenceTimer(clock: Clock, parent: AbortSignal): SilenceTimer {
  const controller = new AbortController();
  const onAbort = () => controller.abort(parent.reason);
  parent.addEventListener('abort', onAbort, { once: true });
  if (parent.aborted) onAbort();
  let timer: Timer | undefined;
  let fired = false;
  const restart = () => {
    timer?.cancel();
    timer = clock.setTimer(() => {
      fired = true;
      controller.abort(new Error('the watch was silent'));
    }, WATCH_SILENCE_MS);
  };
  return {
    signal: controller.signal,
    get fired() {
      return fired;
    },
    restart,
    stop() {
      timer?.cancel();
      parent.removeEventListener('abort', onAbort);
    },
  };
}
