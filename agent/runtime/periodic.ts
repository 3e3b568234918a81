/** A task that runs again and again with a pause in between, one run at a time. */
import type { Clock, Random } from '#shared/clock.ts';
import { pause } from './deadline.ts';

export interface PeriodicOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** Pause between the end of one run and the start of the next. */
  readonly intervalMs: number;
  /** Share of the interval by which a pause may differ, 0..1; keeps a fleet from marching. */
  readonly jitter?: number;
  /** Run once at the start instead of pausing first. */
  readonly immediately?: boolean;
  readonly task: (signal: AbortSignal) => Promise<void>;
  /** A failed run is reported here; the next one comes as if it had not failed. */
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
}

const DEFAULT_JITTER = 0.1;

/** Resolves after `signal` aborted and the run that had begun has ended. */
export async function runPeriodic(options: PeriodicOptions): Promise<void> {
  const { clock, random, signal } = options;
  const jitter = options.jitter ?? DEFAULT_JITTER;
  let first = options.immediately ?? false;
  while (!signal.aborted) {
    if (!first) {
      await pause(clock, options.intervalMs * (1 + jitter * (2 * random() - 1)), signal);
      if (signal.aborted) return;
    }
    first = false;
    try {
      await options.task(signal);
    } catch (error) {
      if (!signal.aborted) options.onError(error);
    }
  }
}
