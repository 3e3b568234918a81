/** The loop that takes keys from the queue, a fixed number at a time, until it is stopped. */
import type { Clock } from '#shared/clock.ts';
import { causesOf } from './causes.ts';
import { withDeadline } from './deadline.ts';
import type { WorkQueue } from './work-queue.ts';

export interface ReconcileResult {
  /** Look at the key again after this time, though nothing has changed by then. */
  readonly requeueAfterMs?: number;
}

export type Reconcile = (key: string, signal: AbortSignal) => Promise<ReconcileResult>;

export type ReconcileOutcome = 'success' | 'requeue' | 'error';

/** What the workers tell about their work; implemented by telemetry. */
export interface ReconcileObserver {
  /** `error` is set for the outcome `error` and is reported here only. */
  reconciled(key: string, outcome: ReconcileOutcome, durationMs: number, error?: unknown): void;
}

export interface WorkersDeps {
  readonly queue: WorkQueue;
  readonly count: number;
  readonly reconcile: Reconcile;
  readonly clock: Clock;
  /** Longest wait after this failure, where the queue's own would be too long. */
  readonly retryWithinMs?: (error: unknown) => number | undefined;
  readonly observer?: ReconcileObserver;
  readonly signal: AbortSignal;
}

/**
 * No single reconcile may hold a worker longer than this. Far above the deadlines of the calls in
 * it (downloading a machine image into a hypervisor is the longest): a net, not a schedule.
 */
export const RECONCILE_DEADLINE_MS = 15 * 60_000;

/** Resolves after `signal` aborted and every reconcile that had begun has ended. */
export async function runWorkers(deps: WorkersDeps): Promise<void> {
  await Promise.all(Array.from({ length: deps.count }, () => work(deps)));
}

async function work(deps: WorkersDeps): Promise<void> {
  for (;;) {
    const key = await deps.queue.get(deps.signal);
    if (key === undefined) return;
    try {
      await reconcileOne(deps, key);
    } finally {
      deps.queue.done(key);
    }
  }
}

async function reconcileOne(deps: WorkersDeps, key: string): Promise<void> {
  const { queue, clock, observer, signal } = deps;
  const startMs = clock.monotonicMs();
  const elapsedMs = () => clock.monotonicMs() - startMs;
  try {
    const result = await withDeadline(clock, RECONCILE_DEADLINE_MS, signal, (deadline) =>
      deps.reconcile(key, deadline),
    );
    queue.forget(key);
    if (result.requeueAfterMs !== undefined) queue.addAfter(key, result.requeueAfterMs);
    observer?.reconciled(
      key,
      result.requeueAfterMs === undefined ? 'success' : 'requeue',
      elapsedMs(),
    );
  } catch (error) {
    // Being stopped is not a failure; the next start looks at every key anyway.
    if (signal.aborted) return;
    queue.addRateLimited(key, askedToWaitMs(error), deps.retryWithinMs?.(error));
    observer?.reconciled(key, 'error', elapsedMs(), error);
  }
}

/** What the other side asked for (`Retry-After`), wherever in the chain of causes it is; or 0. */
function askedToWaitMs(error: unknown): number {
  for (const cause of causesOf(error)) {
    if ('retryAfterMs' in cause && typeof cause.retryAfterMs === 'number')
      return cause.retryAfterMs;
  }
  return 0;
}
