/**
 * Deletion of a Proxy: the finalizer comes off when the machine is gone, or when a person says so
 * (skip-cleanup, Orphan). No failure latches here: dropping the finalizer would leak a machine, and
 * giving up would wedge the object, so cleanup is retried, visibly, until it works.
 */
import { errorClass, ProviderError } from '#agent/providers/errors.ts';
import type { ReconcileResult } from '#agent/runtime/workers.ts';
import { FINALIZER, SKIP_CLEANUP_ANNOTATION } from '#shared/crd/names.ts';
import { findCondition } from '#shared/crd/proxy-status.ts';
import type { StepDeps } from './deps.ts';
import type { Draft } from './draft.ts';
import { unknownProvider } from './failure.ts';
import { pollDelayMs } from './intervals.ts';
import { findUnrecorded, intendedHash, type Step } from './step.ts';

const FAILURE_PREFIX = 'cleanup fails';

export async function reconcileDeletion(
  deps: StepDeps,
  draft: Draft,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { metadata, spec } = draft.proxy;
  if (!metadata.finalizers.includes(FINALIZER)) return {};
  const { providerID } = draft.status;
  const machine = providerID === undefined ? 'an instance, if there is one,' : providerID;
  if (metadata.annotations[SKIP_CLEANUP_ANNOTATION] === 'true') {
    return release(deps, draft, signal, 'CleanupSkipped', `${machine} is abandoned as asked`);
  }
  if (spec.deletionPolicy === 'Orphan') {
    return release(deps, draft, signal, 'Orphaned', `${machine} is left running as asked`);
  }
  // No id and no intent: nothing was ever made, so no provider needs to be asked.
  if (providerID === undefined && intendedHash(draft) === undefined) {
    return release(deps, draft, signal, 'Deleted', 'nothing had been made');
  }
  const provider = deps.providers.get(spec.provider ?? '');
  if (provider === undefined) return withoutProvider(deps, draft);
  const step = { deps, draft, provider, signal };
  try {
    return await removeMachine(step);
  } catch (error) {
    return deletionFailure(step, error);
  }
}

async function removeMachine(step: Step): Promise<ReconcileResult> {
  const { deps, draft, provider, signal } = step;
  // An intent without an id may be a machine that nobody recorded.
  const id = draft.status.providerID ?? (await findUnrecorded(step))?.id;
  if (id === undefined) return release(deps, draft, signal, 'Deleted', 'there was no instance');
  draft.setProviderID(id);
  const found = await lookUp(step, id);
  if (found === 'gone') return release(deps, draft, signal, 'Deleted', `${id} is gone`);
  await provider.delete(id, signal);
  // `get` can never find it (its host left the configuration, say), so a delete that succeeds is
  // all that can be had.
  if (found === 'unreachable') {
    return release(deps, draft, signal, 'Deleted', `${id} was deleted, unseen`);
  }
  draft.clearAddress('Deleting', 'the instance is being deleted');
  const note = `instance ${id} is being deleted`;
  if (draft.setProvisioned('False', 'Deleting', note)) {
    draft.tell({ type: 'Normal', reason: 'Deleting', action: 'Delete', note });
  }
  return { requeueAfterMs: nextPollMs(step) };
}

/** Adaptive like every poll, counted from the request to delete. */
function nextPollMs({ deps, draft }: Step): number {
  const nowMs = draft.nowMs();
  const { deletionTimestamp } = draft.proxy.metadata;
  const sinceMs = deletionTimestamp === undefined ? nowMs : Date.parse(deletionTimestamp);
  return pollDelayMs(deps.intervals.deletionPoll, sinceMs, nowMs);
}

async function lookUp(step: Step, id: string): Promise<'exists' | 'gone' | 'unreachable'> {
  try {
    await step.provider.get(id, step.signal);
    return 'exists';
  } catch (error) {
    switch (errorClass(error)) {
      case 'NotFound':
        return 'gone';
      case 'Permanent':
        return 'unreachable';
      default:
        throw error;
    }
  }
}

function deletionFailure(step: Step, error: unknown): ReconcileResult {
  const { deps, draft, signal } = step;
  if (!(error instanceof ProviderError) || signal.aborted) throw error;
  fail(draft, error.message);
  if (error.class === 'QuotaExceeded') return { requeueAfterMs: deps.intervals.quotaRetryMs };
  throw error;
}

function withoutProvider(deps: StepDeps, draft: Draft): ReconcileResult {
  fail(draft, unknownProvider(draft.proxy.spec.provider));
  return { requeueAfterMs: deps.intervals.quotaRetryMs };
}

/** The first text stays: one that differs at each try would write the status at each try. */
function fail(draft: Draft, message: string): void {
  const before = findCondition(draft.status, 'Provisioned');
  if (before?.reason === 'Deleting' && before.message.startsWith(FAILURE_PREFIX)) return;
  const note =
    `${FAILURE_PREFIX} and is retried: ${message}; ` +
    `the annotation ${SKIP_CLEANUP_ANNOTATION}: "true" would abandon the instance`;
  draft.setProvisioned('False', 'Deleting', note);
  draft.tell({ type: 'Warning', reason: 'CleanupFailed', action: 'Delete', note });
}

async function release(
  deps: StepDeps,
  draft: Draft,
  signal: AbortSignal,
  reason: 'Deleted' | 'Orphaned' | 'CleanupSkipped',
  note: string,
): Promise<ReconcileResult> {
  await deps.writer.removeFinalizer(draft.proxy, signal);
  draft.released = true;
  deps.suspects.clear(draft.key);
  draft.tell({ type: 'Normal', reason, action: 'Release', note });
  return {};
}
