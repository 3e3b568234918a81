/** Makes the machine of a Proxy that has none, or finds the one that nobody recorded. */
import { errorClass } from '#agent/providers/errors.ts';
import { instanceName } from '#agent/providers/naming.ts';
import type { ReconcileResult } from '#agent/runtime/workers.ts';
import { findCondition } from '#shared/crd/proxy-status.ts';
import type { Wait } from './pacing.ts';
import { findUnrecorded, pollAgain, recordIntent, type Step } from './step.ts';

/** What a machine is made from, resolved; the hash stands for all of it. */
export interface Wanted {
  readonly hash: string;
  readonly cloudInit: string | undefined;
}

/** `made` is the recorded intent: a machine of it may exist. */
export async function launch(
  step: Step,
  wanted: Wanted,
  made: string | undefined,
): Promise<ReconcileResult> {
  const { deps, draft } = step;
  const nowMs = deps.clock.monotonicMs();
  const intent = intentOf(step, wanted);
  const retryInMs = deps.pacing.retryInMs(draft.key, intent, nowMs);
  if (retryInMs > 0) return { requeueAfterMs: retryInMs };
  if (made !== undefined && made !== wanted.hash) {
    const unrecorded = await findUnrecorded(step);
    if (unrecorded !== undefined) return adoptUnrecorded(step, unrecorded.id);
  }
  const crashWait = deps.pacing.crashWait(draft.key, wanted.hash, nowMs);
  if (crashWait !== undefined) return waitShown(step, crashWait, 'CrashLoop');
  // A create for a recorded intent may find its machine; to hold it back would delay what exists.
  if (made !== wanted.hash || deps.pacing.isVacant(draft.key)) {
    const throttled = deps.pacing.takeCreation(draft.key, step.provider, nowMs);
    if (throttled !== undefined) return waitShown(step, throttled, 'Throttled');
  }
  if (made !== wanted.hash) await recordIntent(step, wanted.hash);
  return create(step, wanted);
}

async function create(step: Step, wanted: Wanted): Promise<ReconcileResult> {
  const { deps, draft, provider } = step;
  const id = await request(step, wanted);
  draft.setProviderID(id);
  draft.clearAddress('NotProbed', 'the instance has no address yet');
  draft.setProvisioned('False', 'Provisioning', `instance ${id} is coming up`);
  const note = `instance ${id} was requested from ${provider.name}`;
  draft.tell({ type: 'Normal', reason: 'Created', action: 'Create', note });
  return pollAgain(step, deps.intervals.provisioningPoll);
}

async function request(step: Step, wanted: Wanted): Promise<string> {
  const { deps, draft, provider, signal } = step;
  const { namespace, name, uid } = draft.proxy.metadata;
  const { placement, port } = draft.proxy.spec;
  try {
    const id = await provider.create(
      {
        name: instanceName(uid),
        uid,
        installation: deps.installation,
        namespace,
        proxyName: name,
        placement: placement ?? {},
        port,
        generation: draft.proxy.metadata.generation,
        ...(wanted.cloudInit === undefined ? {} : { cloudInit: wanted.cloudInit }),
      },
      signal,
    );
    deps.pacing.created(draft.key);
    return id;
  } catch (error) {
    deps.pacing.failed(draft.key, {
      intent: intentOf(step, wanted),
      errorClass: errorClass(error),
      retryMs: deps.intervals.quotaRetryMs,
      nowMs: deps.clock.monotonicMs(),
    });
    throw error;
  }
}

/** An edit is tried at once, whatever failed before it. */
function intentOf({ draft }: Step, wanted: Wanted): string {
  return `${wanted.hash}@${draft.proxy.metadata.generation}`;
}

function waitShown(
  { draft }: Step,
  { waitMs, message }: Wait,
  reason: 'CrashLoop' | 'Throttled',
): ReconcileResult {
  const before = findCondition(draft.status, 'Provisioned');
  draft.setProvisioned('False', 'Provisioning', message);
  if (before?.message !== message) {
    const type = reason === 'CrashLoop' ? 'Warning' : 'Normal';
    draft.tell({ type, reason, action: 'Create', note: message });
  }
  return { requeueAfterMs: waitMs };
}

/** The next pass sees a recorded machine of another hash and replaces it. */
function adoptUnrecorded(step: Step, id: string): ReconcileResult {
  const { deps, draft } = step;
  draft.setProviderID(id);
  const note = `instance ${id}, begun for an earlier spec and never recorded, was found`;
  draft.setProvisioned('False', 'Provisioning', note);
  draft.tell({ type: 'Normal', reason: 'Adopted', action: 'Adopt', note });
  return { requeueAfterMs: deps.intervals.requeueNowMs };
}
