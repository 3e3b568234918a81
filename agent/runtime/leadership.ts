/**
 * The right to act. One process of an installation has it at a time; whatever acts takes the
 * signal, and asks once more right before an act that cannot be undone.
 */
import type { Clock } from '#shared/clock.ts';

export interface Leadership {
  /** Grows with each election. */
  readonly term: number;
  /** Aborts when leadership has to be given up, while nobody else can have it yet. */
  readonly signal: AbortSignal;
  /**
   * Throws `LeadershipLostError` once another process may lead. Synchronous and cheap: a process
   * that was frozen may run on in the middle of a step, before any timer of it has fired.
   */
  assertHeld(): void;
}

export class LeadershipLostError extends Error {
  override readonly name = 'LeadershipLostError';
}

/** Of a process that nobody competes with. */
export function soleLeadership(clock: Clock, signal: AbortSignal): Leadership {
  // Seconds since the epoch grow from start to start, so that a replaced process which lingers on
  // is stale to the edge.
  return { term: Math.floor(clock.now() / 1000), signal, assertHeld: () => {} };
}
