/**
 * Managed proxies: one machine for each, made, watched by polling, replaced and never doubled.
 *
 * What makes it safe to stop between any two lines:
 * - the finalizer is on the object before anything is made, so the object cannot vanish first;
 * - the spec-hash annotation is written before `create`: it is the intent. An object with the
 *   annotation and no providerID may have a machine that nobody recorded;
 * - `create` is idempotent by a name that follows from the UID, so repeating it finds the machine;
 * - a machine that was begun for another spec than the present one is looked up by its mark,
 *   adopted and then replaced, not mistaken for the new one;
 * - a replacement begins only when `get` says NotFound, since it has the name of its predecessor.
 */
import type { ReconcileResult } from '#agent/runtime/workers.ts';
import { resolveCloudInit } from './cloud-init.ts';
import type { StepDeps } from './deps.ts';
import type { Draft } from './draft.ts';
import { cancelDrain } from './drain.ts';
import { isLatched, providerFailure, unknownProvider } from './failure.ts';
import { launch, type Wanted } from './launch.ts';
import { forgetInstance, observeInstance, removeForReplacement } from './replacement.ts';
import { specHash } from './spec-hash.ts';
import { intendedHash, recordIntent, type Step } from './step.ts';

/** Takes a managed Proxy one step further. Throws what the queue is to retry with backoff. */
export async function reconcileManaged(
  deps: StepDeps,
  draft: Draft,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const provider = deps.providers.get(draft.proxy.spec.provider ?? '');
  if (provider === undefined) return withoutProvider(deps, draft);
  if (isLatched(draft)) {
    draft.applyHealth(deps.verdicts.verdict(draft.key));
    return {};
  }
  const step = { deps, draft, provider, signal };
  try {
    draft.replaceProxy(await deps.writer.addFinalizer(draft.proxy, signal));
    const cloudInit = resolveCloudInit(draft.proxy, deps.cloudInitSecrets);
    if (!cloudInit.ok) return await withoutCloudInit(step, cloudInit.problem);
    const hash = specHash(draft.proxy.spec, cloudInit.userData);
    return await converge(step, { hash, cloudInit: cloudInit.userData });
  } catch (error) {
    return providerFailure(deps, draft, error, signal);
  }
}

/** The machine, if there is one, is kept: nobody can be asked about it. */
function withoutProvider(deps: StepDeps, draft: Draft): ReconcileResult {
  const note = unknownProvider(draft.proxy.spec.provider);
  cancelDrain({ draft });
  if (draft.setProvisioned('False', 'PermanentError', note)) {
    draft.tell({ type: 'Warning', reason: 'PermanentError', action: 'FindProvider', note });
  }
  draft.applyHealth(deps.verdicts.verdict(draft.key));
  return {};
}

/**
 * Without its user-data a machine can be neither made nor compared. One that runs is kept as it
 * is: a Secret that was deleted by mistake must not take a fleet down.
 */
async function withoutCloudInit(step: Step, problem: string): Promise<ReconcileResult> {
  const { deps, draft } = step;
  const { providerID } = draft.status;
  if (providerID !== undefined) {
    const result = draft.isReplacing()
      ? await continueReplacement(step, providerID)
      : await observeInstance(step, providerID);
    if (draft.status.providerID !== undefined) return result;
  }
  if (draft.setProvisioned('False', 'CloudInitError', problem)) {
    const action = 'ReadCloudInit';
    draft.tell({ type: 'Warning', reason: 'CloudInitError', action, note: problem });
  }
  // The Secret's informer wakes the Proxy when it appears; this is the net under it.
  return { requeueAfterMs: deps.intervals.driftPollMs };
}

async function continueReplacement(step: Step, providerID: string): Promise<ReconcileResult> {
  const waiting = await removeForReplacement(step, providerID, 'the instance is being replaced');
  return waiting ?? forgetInstance(step);
}

async function converge(step: Step, wanted: Wanted): Promise<ReconcileResult> {
  const { deps, draft } = step;
  const { providerID } = draft.status;
  const made = intendedHash(draft);
  if (providerID === undefined) return launch(step, wanted, made);
  if (made === undefined) {
    await recordIntent(step, wanted.hash);
    const note = `instance ${providerID} is taken as made from the present spec`;
    draft.tell({ type: 'Normal', reason: 'Adopted', action: 'Adopt', note });
    return { requeueAfterMs: deps.intervals.requeueNowMs };
  }
  if (made === wanted.hash && !draft.isReplacing()) return observeInstance(step, providerID);
  const why = 'the spec changed in what needs a new machine';
  const waiting = await removeForReplacement(step, providerID, why);
  if (waiting !== undefined) return waiting;
  // The intent of the next machine goes first: a crash after it leaves a recorded id that `get`
  // does not find, which leads to the same place.
  await recordIntent(step, wanted.hash);
  return forgetInstance(step);
}
