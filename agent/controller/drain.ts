/**
 * Draining: before a machine that crawlers may be using is destroyed, it is cordoned at the edge
 * and its leases are waited for, no longer than `spec.drainSeconds`. The condition Draining is the
 * whole state: its transition time is the start, so that the wait outlives a restart of the agent.
 * The edge learns of the cordon from the phase; address, Provisioned and Healthy stay as they are.
 */
import type { Instance } from '#agent/providers/provider.ts';
import type { ReconcileResult } from '#agent/runtime/workers.ts';
import type { Draft, DrainReason } from './draft.ts';
import { pollDelayMs } from './intervals.ts';
import { isDown, type Step } from './step.ts';

/** What the edge says of leases on a proxy that drains. */
export interface LeaseReader {
  /**
   * Leases that are left on the Proxy of that UID; undefined while the edge has not confirmed that
   * it gives out no more of it.
   */
  remaining(uid: string): number | undefined;
}

/**
 * Begins or goes on with the drain of a machine that is to be destroyed, and answers when to look
 * again; undefined: there is nothing (more) to wait for. A machine that cannot be looked at may be
 * in use all the same. The condition stays until `endDrain`, so that a destruction that fails is
 * not preceded by another drain.
 */
export function drain(
  step: Step,
  instance: Instance | undefined,
  reason: DrainReason,
): ReconcileResult | undefined {
  if ((instance !== undefined && isDown(instance)) || !isInUse(step.draft)) return undefined;
  return beginDrain(step, reason) ?? waitOn(step, reason);
}

/** Whether crawlers may be on the machine, and are to be waited for. */
function isInUse({ status, proxy }: Draft): boolean {
  return status.ip !== undefined && proxy.spec.drainSeconds > 0;
}

/**
 * Nothing that the edge says counts before the phase was written: it cannot have seen the cordon,
 * so a drain takes one poll at least.
 */
function beginDrain(step: Step, reason: DrainReason): ReconcileResult | undefined {
  const { draft } = step;
  if (draft.drainingSinceMs() !== undefined) return undefined;
  const note = waitsFor(step, undefined, draft.nowMs());
  draft.setDraining(reason, note);
  draft.applyHealth(step.deps.verdicts.verdict(draft.key));
  const why = reason === 'Deletion' ? 'before the deletion' : 'before the replacement';
  draft.tell({ type: 'Normal', reason: 'Draining', action: 'Drain', note: `${why}: ${note}` });
  return { requeueAfterMs: nextPollMs(step, draft.nowMs()) };
}

function waitOn(step: Step, reason: DrainReason): ReconcileResult | undefined {
  const { deps, draft } = step;
  const outcome = drainOutcome(step);
  if (outcome !== 'waiting') return undefined;
  const sinceMs = draft.drainingSinceMs() ?? draft.nowMs();
  const remaining = deps.leases.remaining(draft.proxy.metadata.uid);
  draft.setDraining(reason, waitsFor(step, remaining, sinceMs));
  draft.applyHealth(deps.verdicts.verdict(draft.key));
  return { requeueAfterMs: nextPollMs(step, sinceMs) };
}

/** Where a drain that has begun stands now. */
export function drainOutcome({ deps, draft }: Step): 'waiting' | 'drained' | 'timed-out' {
  if (deps.leases.remaining(draft.proxy.metadata.uid) === 0) return 'drained';
  const sinceMs = draft.drainingSinceMs() ?? draft.nowMs();
  return draft.nowMs() < deadlineMs(draft, sinceMs) ? 'waiting' : 'timed-out';
}

/** Takes the condition off a machine whose destruction has begun, and tells how the drain ended. */
export function endDrain(step: Step, instance: Instance | undefined): void {
  const { draft, deps } = step;
  if (draft.drainingSinceMs() === undefined) return;
  const outcome = drainOutcome(step);
  draft.clearDraining();
  // A machine that is dead ends its leases by itself.
  if (instance === undefined || isDown(instance)) return;
  if (outcome === 'drained') {
    const note = 'no leases are left';
    draft.tell({ type: 'Normal', reason: 'Drained', action: 'Drain', note });
    return;
  }
  const left = leases(deps.leases.remaining(draft.proxy.metadata.uid));
  const note = `${draft.proxy.spec.drainSeconds} s are over; ${left}, and the instance goes anyway`;
  draft.tell({ type: 'Warning', reason: 'DrainTimedOut', action: 'Drain', note });
}

/** The machine stays after all. */
export function cancelDrain({ draft }: Pick<Step, 'draft'>): void {
  if (draft.drainingSinceMs() === undefined) return;
  draft.clearDraining();
  const note = 'the instance is kept; leases are granted again';
  draft.tell({ type: 'Normal', reason: 'DrainCancelled', action: 'Drain', note });
}

/** Differs only when the number of leases or the deadline does: each text is a status write. */
function waitsFor({ draft }: Step, remaining: number | undefined, sinceMs: number): string {
  const until = new Date(deadlineMs(draft, sinceMs)).toISOString();
  return `${leases(remaining)}; waiting until ${until} at the latest`;
}

function leases(remaining: number | undefined): string {
  if (remaining === undefined) return 'the edge has not confirmed the cordon yet';
  return remaining === 1 ? '1 lease is left' : `${remaining} leases are left`;
}

function deadlineMs(draft: Draft, sinceMs: number): number {
  return sinceMs + draft.proxy.spec.drainSeconds * 1000;
}

function nextPollMs({ deps, draft }: Step, sinceMs: number): number {
  const pollMs = pollDelayMs(deps.intervals.deletionPoll, sinceMs, draft.nowMs());
  const leftMs = deadlineMs(draft, sinceMs) - draft.nowMs();
  return Math.max(Math.min(pollMs, leftMs), 1);
}
