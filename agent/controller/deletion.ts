/**
 * Deletion of a Proxy: the finalizer comes off when the machine is gone, when its mark is off
 * (Orphan), or when a person says so (skip-cleanup). No failure latches here: dropping the
 * finalizer would leak a machine, and giving up would wedge the object, so cleanup is retried,
 * visibly, until it works.
 */
import { errorClass, ProviderError } from '#agent/providers/errors.ts';
import type { Instance } from '#agent/providers/provider.ts';
import type { ReconcileResult } from '#agent/runtime/workers.ts';
import { FINALIZER, SKIP_CLEANUP_ANNOTATION } from '#shared/crd/names.ts';
import { findCondition } from '#shared/crd/proxy-status.ts';
import type { StepDeps } from './deps.ts';
import type { Draft } from './draft.ts';
import { drain, endDrain } from './drain.ts';
import { isLasting, unknownProvider } from './failure.ts';
import { pollDelayMs } from './intervals.ts';
import { drainUnlessDown, unconfirmedGone } from './replacement.ts';
import { describeOwner, findUnrecorded, intendedHash, isOwn, type Step } from './step.ts';

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
    return release({ deps, draft, signal }, 'CleanupSkipped', `${machine} is abandoned as asked`);
  }
  // No id and no intent: nothing was ever made, so no provider needs to be asked.
  if (providerID === undefined && intendedHash(draft) === undefined) {
    return release({ deps, draft, signal }, 'Deleted', 'nothing had been made');
  }
  const provider = deps.providers.get(spec.provider ?? '');
  if (provider === undefined) return withoutProvider(deps, draft);
  const step = { deps, draft, provider, signal };
  try {
    return spec.deletionPolicy === 'Orphan' ? await leaveMachine(step) : await removeMachine(step);
  } catch (error) {
    return deletionFailure(step, error);
  }
}

/** An intent without an id may be a machine that nobody recorded. */
async function findMachine(step: Step): Promise<string | undefined> {
  const id = step.draft.status.providerID ?? (await findUnrecorded(step))?.id;
  if (id !== undefined) step.draft.setProviderID(id);
  return id;
}

async function removeMachine(step: Step): Promise<ReconcileResult> {
  const { draft, provider, signal } = step;
  const id = await findMachine(step);
  if (id === undefined) return release(step, 'Deleted', 'there was no instance');
  const found = await lookUp(step, id);
  if (found === 'gone') {
    return (await doubt(step, id)) ?? release(step, 'Deleted', `${id} is gone`);
  }
  if (found !== 'unreachable' && !isOwn(step, found)) {
    return release(step, 'Deleted', oursIsGone(step, found));
  }
  const instance = found === 'unreachable' ? undefined : found;
  const waiting =
    instance === undefined
      ? drain(step, undefined, 'Deletion')
      : drainUnlessDown(step, instance, 'Deletion');
  if (waiting !== undefined) return waiting;
  await provider.delete(id, signal);
  // `get` can never find it (its host left the configuration, say), so a delete that succeeds is
  // all that can be had.
  if (found === 'unreachable') return release(step, 'Deleted', `${id} was deleted, unseen`);
  endDrain(step, instance);
  draft.clearAddress('Deleting', 'the instance is being deleted');
  const note = beingDeleted(id);
  if (draft.setProvisioned('False', 'Deleting', note)) {
    draft.tell({ type: 'Normal', reason: 'Deleting', action: 'Delete', note });
  }
  return { requeueAfterMs: nextPollMs(step) };
}

/** Takes the mark off first: by it a sweep would find the machine once the object is gone. */
async function leaveMachine(step: Step): Promise<ReconcileResult> {
  const id = await findMachine(step);
  if (id === undefined) return release(step, 'Orphaned', 'there was no instance');
  const found = await lookUp(step, id);
  if (found === 'gone') {
    return (await doubt(step, id)) ?? release(step, 'Orphaned', `${id} is gone already`);
  }
  if (found !== 'unreachable' && !isOwn(step, found)) {
    // Our own mark may be off already: a crash between that and the release.
    const note = found.uid === '' ? `${id} is left running as asked` : oursIsGone(step, found);
    return release(step, 'Orphaned', note);
  }
  await step.provider.disown(id, step.signal);
  return release(step, 'Orphaned', `${id} is left running as asked, without our mark`);
}

function beingDeleted(id: string): string {
  return `instance ${id} is being deleted`;
}

/** Only what was deleted here is believed to be gone the first time that it is said. */
async function doubt(step: Step, id: string): Promise<ReconcileResult | undefined> {
  const provisioned = findCondition(step.draft.status, 'Provisioned');
  return provisioned?.message === beingDeleted(id) ? undefined : unconfirmedGone(step, id);
}

function oursIsGone(step: Step, found: Instance): string {
  return `the machine of this Proxy is gone: ${describeOwner(step, found)}`;
}

/** Adaptive like every poll, counted from the request to delete, or from the end of a drain. */
function nextPollMs({ deps, draft }: Step): number {
  const nowMs = draft.nowMs();
  const { deletionTimestamp } = draft.proxy.metadata;
  const askedMs = deletionTimestamp === undefined ? nowMs : Date.parse(deletionTimestamp);
  const sinceMs = Math.max(askedMs, draft.provisionedSinceMs());
  return pollDelayMs(deps.intervals.deletionPoll, sinceMs, nowMs);
}

async function lookUp(step: Step, id: string): Promise<Instance | 'gone' | 'unreachable'> {
  try {
    return await step.provider.get(id, step.signal);
  } catch (error) {
    if (error instanceof ProviderError && error.neverMade) return 'gone';
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
  // A machine that cannot be looked at may be in use all the same.
  const waiting = error.op === 'get' ? drain(step, undefined, 'Deletion') : undefined;
  if (waiting !== undefined) return waiting;
  if (error.class !== 'Transient' || isLasting(deps, draft)) fail(draft, error.message);
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
  { deps, draft, signal }: Omit<Step, 'provider'>,
  reason: 'Deleted' | 'Orphaned' | 'CleanupSkipped',
  note: string,
): Promise<ReconcileResult> {
  await deps.writer.removeFinalizer(draft.proxy, signal);
  draft.released = true;
  draft.tell({ type: 'Normal', reason, action: 'Release', note });
  return {};
}
