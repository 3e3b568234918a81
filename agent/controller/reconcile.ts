/**
 * The reconciler: a key in, at most one status write out. It reads the object from the cache, lets
 * the steps of its kind stage what they find, and writes the result when something changed. Steps
 * are safe to repeat; a crash between any two lines costs a repetition and nothing else.
 */
import { isDeepStrictEqual } from 'node:util';
import { isKubeError } from '#agent/kube/errors.ts';
import type { Reconcile, ReconcileResult } from '#agent/runtime/workers.ts';
import { findCondition } from '#shared/crd/proxy-status.ts';
import { createBrake } from './brake.ts';
import { reconcileDeletion } from './deletion.ts';
import { type ControllerDeps, createSuspectList, type StepDeps } from './deps.ts';
import { Draft } from './draft.ts';
import { reconcileExternal } from './external.ts';
import { DEFAULT_INTERVALS, type Intervals } from './intervals.ts';
import { reconcileManaged } from './managed.ts';
import { createPacing, type PacingOptions } from './pacing.ts';
import { summarize } from './status.ts';

export interface ControllerOptions {
  readonly intervals?: Intervals;
  readonly pacing?: PacingOptions;
}

/** The function that workers call with `namespace/name`. */
export function createReconcile(deps: ControllerDeps, options: ControllerOptions = {}): Reconcile {
  const { intervals = DEFAULT_INTERVALS } = options;
  const steps: StepDeps = {
    ...deps,
    intervals,
    suspects: createSuspectList(),
    failing: createSuspectList(),
    pacing: createPacing(options.pacing),
    brake: createBrake(deps.observer),
  };
  return async (key, signal) => {
    try {
      return await reconcileOne(steps, key, signal);
    } catch (error) {
      // Somebody else wrote the object meanwhile: decide again on what it is now.
      if (isKubeError(error, 'Conflict')) return { requeueAfterMs: intervals.requeueNowMs };
      // It was deleted meanwhile, by whoever took the finalizer off.
      if (isKubeError(error, 'NotFound')) return {};
      throw error;
    }
  };
}

async function reconcileOne(
  deps: StepDeps,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const proxy = deps.proxies.get(key);
  if (proxy === undefined) {
    forget(deps, key);
    return {};
  }
  const draft = new Draft(proxy, deps);
  let result: ReconcileResult = {};
  try {
    result = await dispatch(deps, draft, signal);
    deps.failing.clear(key);
  } catch (error) {
    reportHealth(deps, draft);
    // What was learned before the failure is told all the same, unless it was our own stop.
    if (!signal.aborted) await writeStatus(deps, draft, signal);
    throw error;
  }
  if (draft.released) {
    forget(deps, key);
  } else {
    reportHealth(deps, draft);
    await writeStatus(deps, draft, signal);
  }
  return result;
}

/** What is remembered of a Proxy that is gone would be mistaken for its namesake's. */
function forget(deps: StepDeps, key: string): void {
  deps.suspects.clear(key);
  deps.failing.clear(key);
  deps.pacing.forget(key);
  deps.brake.forget(key, deps.clock.monotonicMs());
}

/** How the machine is, for the brake: as staged, so that it counts before the status is written. */
function reportHealth({ brake, clock }: StepDeps, draft: Draft): void {
  const { metadata, spec } = draft.proxy;
  if (spec.provider === undefined) return;
  const nowMs = clock.monotonicMs();
  if (metadata.deletionTimestamp !== undefined) {
    brake.forget(draft.key, nowMs);
    return;
  }
  const healthy = draft.isProvisioned() ? findCondition(draft.status, 'Healthy') : undefined;
  if (healthy?.status === 'True') brake.well(draft.key, spec.provider, nowMs);
  else if (healthy?.status === 'False') {
    const sinceMs = draft.nowMs() - Date.parse(healthy.lastTransitionTime);
    brake.sick(draft.key, spec.provider, { sinceMs, nowMs });
  } else brake.idle(draft.key);
}

function dispatch(deps: StepDeps, draft: Draft, signal: AbortSignal): Promise<ReconcileResult> {
  const { spec, metadata } = draft.proxy;
  if (spec.paused) return representOnly(deps, draft);
  if (metadata.deletionTimestamp !== undefined) return reconcileDeletion(deps, draft, signal);
  if (spec.mode === 'External') return reconcileExternal(deps, draft, signal);
  return reconcileManaged(deps, draft, signal);
}

/** A paused object is not acted on; what probes find is still shown. */
async function representOnly(deps: StepDeps, draft: Draft): Promise<ReconcileResult> {
  if (draft.status.ip !== undefined && draft.isProvisioned()) {
    draft.applyHealth(deps.verdicts.verdict(draft.key));
  }
  return {};
}

async function writeStatus(deps: StepDeps, draft: Draft, signal: AbortSignal): Promise<void> {
  if (draft.released) return;
  const { proxy } = draft;
  const observed = !proxy.spec.paused;
  const status = summarize(proxy, draft.status, { nowMs: draft.nowMs(), observed });
  if (isDeepStrictEqual(status, proxy.status)) return;
  await deps.writer.patchStatus(proxy, status, signal);
}
