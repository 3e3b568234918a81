/** Observes a recorded machine and, when it is dead or outdated, makes way for the next one. */
import { errorClass, ProviderError } from '#agent/providers/errors.ts';
import type { Instance } from '#agent/providers/provider.ts';
import type { ReconcileResult } from '#agent/runtime/workers.ts';
import type { DrainReason } from './draft.ts';
import { cancelDrain, drain, endDrain } from './drain.ts';
import {
  type DownInstance,
  describeOwner,
  findUnrecorded,
  intendedHash,
  isDown,
  isOwn,
  pollAgain,
  type Step,
} from './step.ts';

/** Asks the provider for the recorded machine and stages what it says. */
export async function observeInstance(step: Step, providerID: string): Promise<ReconcileResult> {
  cancelDrain(step);
  const instance = await getMade(step, providerID);
  if (instance === undefined) return replaceVanished(step, providerID);
  if (isDown(instance)) return replaceDown(step, instance);
  return instance.state === 'Provisioning' || instance.ip === undefined
    ? comingUp(step, instance)
    : running(step, instance, instance.ip);
}

/** undefined when the machine is gone. One that is not ours is Permanent: nobody touches it. */
async function getInstance(step: Step, providerID: string): Promise<Instance | undefined> {
  const instance = await lookUp(step, providerID);
  if (instance === undefined || isOwn(step, instance)) return instance;
  // Whoever is leased this proxy would be sent to somebody else's machine.
  step.draft.clearAddress('NotProbed', 'the recorded instance is not of this Proxy');
  const at = { op: 'get', provider: step.provider.name } as const;
  const remedy = 'deleting this Proxy releases it, and another one can be made';
  throw new ProviderError('Permanent', at, `${describeOwner(step, instance)}; ${remedy}`);
}

/** As `getInstance`. A machine that was never made is forgotten: its create has failed, late. */
async function getMade(step: Step, providerID: string): Promise<Instance | undefined> {
  try {
    return await getInstance(step, providerID);
  } catch (error) {
    if (error instanceof ProviderError && error.neverMade) forgetUnmade(step, error);
    throw error;
  }
}

/** Shown and paced by the failure itself, as that of a create is. */
function forgetUnmade(step: Step, error: ProviderError): void {
  const { deps, draft } = step;
  draft.setProviderID(undefined);
  // A create that is answered forgets the failures before it, and the deaths not.
  if (error.class === 'Transient') noteDeath(step, 0);
  deps.suspects.clear(draft.key);
  deps.pacing.failed(draft.key, {
    intent: `${intendedHash(draft)}@${draft.proxy.metadata.generation}`,
    errorClass: error.class,
    retryMs: deps.intervals.quotaRetryMs,
    nowMs: deps.clock.monotonicMs(),
  });
}

async function lookUp(step: Step, providerID: string): Promise<Instance | undefined> {
  try {
    return await step.provider.get(providerID, step.signal);
  } catch (error) {
    if (errorClass(error) === 'NotFound') return undefined;
    throw error;
  }
}

function running(step: Step, instance: Instance, ip: string): ReconcileResult {
  const { deps, draft } = step;
  deps.suspects.clear(draft.key);
  draft.setAddress(ip, draft.proxy.spec.port, instance.createdAtMs);
  const note = `instance ${draft.status.providerID} runs at ${ip}`;
  if (draft.setProvisioned('True', 'Created', note)) {
    draft.tell({ type: 'Normal', reason: 'Running', action: 'Observe', note });
  }
  draft.applyHealth(deps.verdicts.verdict(draft.key));
  return { requeueAfterMs: deps.intervals.driftPollMs };
}

function comingUp(step: Step, instance: Instance): ReconcileResult {
  const { deps, draft } = step;
  deps.suspects.clear(draft.key);
  const detail = instance.detail === undefined ? '' : ` (${instance.detail})`;
  draft.setProvisioned('False', 'Provisioning', `instance ${instance.id} is coming up${detail}`);
  draft.applyHealth(deps.verdicts.verdict(draft.key));
  return pollAgain(step, deps.intervals.provisioningPoll);
}

async function replaceVanished(step: Step, providerID: string): Promise<ReconcileResult> {
  const { draft } = step;
  const found = foundGone(providerID);
  const waiting = unconfirmed(step, found) ?? held(step, found) ?? (await stillListed(step));
  if (waiting !== undefined) return waiting;
  const note = `making a new instance: ${found.note}`;
  draft.tell({ type: 'Normal', reason: 'Replacing', action: 'Observe', note });
  noteDeath(step, ranMs(step));
  return forgetInstance(step);
}

async function replaceDown(step: Step, instance: DownInstance): Promise<ReconcileResult> {
  const found = foundDown(instance);
  const waiting = unconfirmed(step, found) ?? held(step, found);
  if (waiting !== undefined) return waiting;
  const lastedMs = ranMs(step);
  const result = await destroyForReplacement(step, instance, found.note);
  noteDeath(step, lastedMs);
  return result;
}

/** How long the machine has run, by the status, which outlives a restart of the agent. */
function ranMs({ draft }: Step): number {
  return draft.isProvisioned() ? draft.nowMs() - draft.provisionedSinceMs() : 0;
}

function noteDeath(step: Step, lastedMs: number): void {
  const { deps, draft } = step;
  const specHash = intendedHash(draft) ?? '';
  const nowMs = deps.clock.monotonicMs();
  deps.pacing.died(draft.key, { specHash, ranMs: lastedMs, nowMs });
}

/** What a provider said of a machine that speaks for another one in its place. */
interface Finding {
  readonly id: string;
  readonly reason: string;
  readonly note: string;
}

/** With the provider's own word for the state, which may be one that nobody here knows. */
function foundDown({ id, state, detail }: DownInstance): Finding {
  const word = detail === undefined ? '' : ` (${detail})`;
  return { id, reason: `Instance${state}`, note: `instance ${id} is ${state}${word}` };
}

function foundGone(id: string): Finding {
  return { id, reason: 'InstanceGone', note: `instance ${id} is gone, deleted by somebody else` };
}

/**
 * When to look again for a machine that is said to be gone though nobody here deleted it; undefined
 * when it is certain: said twice, and not in the provider's list either. What is forgotten by
 * mistake runs on, and costs; the list is dear, too, but machines rarely vanish.
 */
export async function unconfirmedGone(
  step: Step,
  providerID: string,
): Promise<ReconcileResult | undefined> {
  return unconfirmed(step, foundGone(providerID)) ?? (await stillListed(step));
}

/** A machine that the list shows is recorded, and looked at again. */
async function stillListed(step: Step): Promise<ReconcileResult | undefined> {
  const listed = await findUnrecorded(step);
  if (listed === undefined) return undefined;
  step.draft.setProviderID(listed.id);
  return { requeueAfterMs: step.deps.intervals.provisioningPoll.maxMs };
}

/**
 * A machine that is called dead is shown as unhealthy at once, and is taken for dead when the
 * provider says so again a moment later: a single odd answer must not cost a machine. Answers when
 * to look again, or undefined when there is no doubt left.
 */
function unconfirmed(step: Step, { id, reason, note }: Finding): ReconcileResult | undefined {
  const { deps, draft } = step;
  const { requeueNowMs } = deps.intervals;
  const suspectedMs = deps.suspects.suspect(draft.key, id, deps.clock.monotonicMs());
  if (suspectedMs >= requeueNowMs) return undefined;
  if (draft.setHealthy('False', reason, note)) {
    draft.tell({ type: 'Warning', reason, action: 'Observe', note });
  }
  return { requeueAfterMs: requeueNowMs - suspectedMs };
}

/**
 * Puts off a replacement that nobody asked for while most of the fleet seems to fail. A machine
 * that never ran says nothing of the fleet; its successors are paced.
 */
function held(step: Step, { reason, note }: Finding): ReconcileResult | undefined {
  const { deps, draft, provider } = step;
  if (!draft.isProvisioned()) return undefined;
  const hold = deps.brake.hold(draft.key, provider.name, deps.clock.monotonicMs());
  if (hold === undefined) return undefined;
  const message = `${note}; ${hold.message}`;
  draft.setHealthy('False', reason, message);
  if (hold.isNew) {
    draft.tell({ type: 'Warning', reason: 'ReplacementHeld', action: 'Replace', note: message });
  }
  return { requeueAfterMs: deps.intervals.provisioningPoll.maxMs };
}

/** Answers when to look again, or undefined when the machine is gone and its name is free. */
export async function removeForReplacement(
  step: Step,
  providerID: string,
  why: string,
): Promise<ReconcileResult | undefined> {
  const { draft } = step;
  const instance = await getInstance(step, providerID).catch(goneIfNeverMade);
  if (instance === undefined) {
    return draft.isReplacing() ? undefined : unconfirmedGone(step, providerID);
  }
  if (!draft.isReplacing()) {
    const waiting = drainUnlessDown(step, instance, 'Replacement');
    if (waiting !== undefined) return waiting;
  }
  return destroyForReplacement(step, instance, why);
}

/** What was never made needs no removal, whatever the reason. */
export function goneIfNeverMade(error: unknown): undefined {
  if (error instanceof ProviderError && error.neverMade) return;
  throw error;
}

/** `drain`; one odd answer must not end it, though, nor cost the leases on the machine. */
export function drainUnlessDown(
  step: Step,
  instance: Instance,
  reason: DrainReason,
): ReconcileResult | undefined {
  const { deps, draft } = step;
  if (!isDown(instance)) deps.suspects.clear(draft.key);
  else if (draft.drainingSinceMs() !== undefined) return unconfirmed(step, foundDown(instance));
  return drain(step, instance, reason);
}

/** Repeated at every poll until `get` says NotFound, as the contract asks. */
async function destroyForReplacement(
  step: Step,
  instance: Instance,
  why: string,
): Promise<ReconcileResult> {
  const { deps, draft, provider, signal } = step;
  await provider.delete(instance.id, signal);
  deps.suspects.clear(draft.key);
  endDrain(step, instance);
  if (!draft.isReplacing()) {
    // Without an address the proxy leaves the inventory: nobody is sent to a dying machine.
    draft.clearAddress('Replacing', 'the instance is being replaced');
    draft.setProvisioned('False', 'Replacing', why);
    const note = `replacing instance ${instance.id}: ${why}`;
    draft.tell({ type: 'Normal', reason: 'Replacing', action: 'Delete', note });
  }
  return pollAgain(step, deps.intervals.deletionPoll);
}

/** The machine is gone for good; the next pass makes another one. */
export function forgetInstance(step: Step): ReconcileResult {
  const { deps, draft } = step;
  deps.pacing.vacant(draft.key);
  endDrain(step, undefined);
  deps.suspects.clear(draft.key);
  draft.setProviderID(undefined);
  draft.clearAddress('NotProbed', 'there is no instance at present');
  draft.setProvisioned('False', 'Provisioning', 'the instance is gone; making a new one');
  return { requeueAfterMs: deps.intervals.requeueNowMs };
}
