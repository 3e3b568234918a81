/**
 * A file that is read again when it changes. By polling its content: a mounted ConfigMap changes by
 * a swapped link two directories up, which file notifications miss.
 */
import { readFile } from 'node:fs/promises';
import type { Clock, Random } from '#shared/clock.ts';
import { runPeriodic } from './periodic.ts';

export interface WatchedFileOptions {
  readonly path: string;
  /** Text as it is known already; a change is a difference from it. */
  readonly text: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly intervalMs?: number;
  readonly onChange: (text: string) => void;
  /** The file cannot be read; told once until it can. */
  readonly onError: (error: unknown) => void;
  readonly signal: AbortSignal;
}

const INTERVAL_MS_DEFAULT = 5_000;

/** Resolves after `signal` aborted. */
export async function watchFile(options: WatchedFileOptions): Promise<void> {
  let known = options.text;
  let failing = false;
  await runPeriodic({
    clock: options.clock,
    random: options.random,
    intervalMs: options.intervalMs ?? INTERVAL_MS_DEFAULT,
    signal: options.signal,
    async task(signal) {
      const text = await readFile(options.path, { encoding: 'utf8', signal });
      failing = false;
      if (text === known) return;
      known = text;
      options.onChange(text);
    },
    onError(error) {
      if (!failing) options.onError(error);
      failing = true;
    },
  });
}
