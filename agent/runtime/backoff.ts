/** Exponential delays with jitter, for everything that tries again. Pure but for `random`. */
import type { Random } from '#shared/clock.ts';

export interface BackoffPolicy {
  /** Delay after the first failure, in milliseconds. */
  readonly baseMs: number;
  /** Longest delay, in milliseconds. */
  readonly maxMs: number;
}

/** Doublings beyond this cannot matter and would lose the number's precision. */
const EXPONENT_MAX = 40;

/**
 * Delay before the next try after `failures` (≥ 1) failures in a row: half of it fixed, half
 * random ("equal jitter"), so that parts which failed together do not come back together and a
 * delay never shrinks to nothing.
 */
export function backoffDelayMs(policy: BackoffPolicy, failures: number, random: Random): number {
  const exponent = Math.min(Math.max(failures - 1, 0), EXPONENT_MAX);
  const ceilingMs = Math.min(policy.baseMs * 2 ** exponent, policy.maxMs);
  return ceilingMs / 2 + (ceilingMs / 2) * random();
}

/** Counts the failures of one thing that is tried again and again. */
export interface Backoff {
  /** Notes a failure and gives the delay to wait after it. */
  nextMs(): number;
  /** Call after a success. */
  reset(): void;
  /** Failures in a row. */
  readonly failures: number;
}

export function createBackoff(policy: BackoffPolicy, random: Random): Backoff {
  let failures = 0;
  return {
    nextMs() {
      failures++;
      return backoffDelayMs(policy, failures, random);
    },
    reset() {
      failures = 0;
    },
    get failures() {
      return failures;
    },
  };
}
