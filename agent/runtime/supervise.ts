/** Runs the loops of a process together: when one fails all end, and ending waits for them. */
import type { Clock } from '#shared/clock.ts';
import { untilAborted } from './deadline.ts';

export interface SuperviseOptions {
  readonly clock: Clock;
  /** Stops every loop. */
  readonly stop: AbortController;
  /** Longest wait for the loops after the stop. */
  readonly graceMs: number;
}

/** A loop ends only when its signal aborts; a rejection or an earlier end is a failure of it. */
export type Loop = (signal: AbortSignal) => Promise<void>;

/**
 * Resolves with the names of the loops that had not ended `graceMs` after the stop (none, when all
 * is well). Rejects with the failure of a loop, after the others have been stopped as well.
 */
export async function supervise(
  loops: Readonly<Record<string, Loop>>,
  { clock, stop, graceMs }: SuperviseOptions,
): Promise<string[]> {
  const running = new Set<string>();
  const failures: unknown[] = [];
  const ended = Object.entries(loops).map(async ([name, loop]) => {
    running.add(name);
    try {
      await loop(stop.signal);
      if (!stop.signal.aborted) throw new Error(`the loop ${name} ended by itself`);
    } catch (error) {
      if (!stop.signal.aborted || error !== stop.signal.reason) failures.push(error);
      stop.abort(new Error(`the loop ${name} failed`, { cause: error }));
    } finally {
      running.delete(name);
    }
  });
  await untilAborted(stop.signal);
  const grace = new AbortController();
  await Promise.race([
    Promise.all(ended),
    clock.sleep(graceMs, grace.signal).catch(() => {
      // Cancelled below: every loop ended in time.
    }),
  ]);
  grace.abort();
  if (failures.length > 0) throw failures[0];
  return [...running];
}
