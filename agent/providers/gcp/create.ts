/** `create`: one instance for one request, whatever was lost, repeated or in the way. */
import type { Clock } from '#shared/clock.ts';
import type { GcpBlock } from '../config-gcp.ts';
import { ProviderError, type ProviderErrorClass } from '../errors.ts';
import { isMadeFor } from '../mark.ts';
import type { CreateRequest } from '../provider.ts';
import { hasStatus, saysNotFound } from './classify.ts';
import type { ComputeApi } from './compute-api.ts';
import { buildRule, compareRule, ruleName } from './firewall.ts';
import { formatId, type InstanceRef } from './id.ts';
import { outcomeOf } from './operation.ts';
import { buildInstance, requestProblem } from './request.ts';
import { requestIdOf } from './request-id.ts';
import type { InstanceResource } from './resources.ts';
import { isLeaving } from './state.ts';

/**
 * Request ids that one `create` goes through. Each stands for a machine of the same generation that
 * failed or died within the hour for which the API remembers it; the controller's pacing allows a
 * dozen.
 */
const ATTEMPTS_MAX = 50;
/** A failure that is no older is told; an older one was told, and is tried again. */
const FAILURE_FRESH_MS = 30_000;

export interface CreateDeps {
  readonly provider: string;
  readonly block: GcpBlock;
  readonly api: ComputeApi;
  readonly clock: Pick<Clock, 'now'>;
}

/**
 * Submits the instance and answers its id.
 *
 * The request id makes a repeat the same insert: the API answers with the operation of the first.
 * That one may be over, though, and its machine dead, or never made. Its id is spent then, and the
 * next one is taken, so that neither a replacement nor a retry waits for the API to forget.
 */
export async function createInstance(
  deps: CreateDeps,
  request: CreateRequest,
  signal: AbortSignal,
): Promise<string> {
  const problem = requestProblem(request, deps.block);
  if (problem !== undefined) throw failed(deps, 'Permanent', problem);
  const ref = { zone: request.placement.zone ?? '', name: request.name };
  await ensureFirewall(deps, request.installation, signal);
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    if (await submit(deps, { request, ref, attempt }, signal)) return formatId(ref);
  }
  throw failed(deps, 'Transient', `${ATTEMPTS_MAX} inserts of ${formatId(ref)} came to nothing`);
}

interface Attempt {
  readonly request: CreateRequest;
  readonly ref: InstanceRef;
  readonly attempt: number;
}

/** Whether the instance is submitted or there; false when the attempt's request id is spent. */
async function submit(deps: CreateDeps, at: Attempt, signal: AbortSignal): Promise<boolean> {
  const { request, ref, attempt } = at;
  const { uid, installation, generation = 0 } = request;
  const requestId = requestIdOf({ uid, installation, zone: ref.zone, generation, attempt });
  try {
    const body = buildInstance(request, deps.block);
    const operation = await deps.api.insertInstance({ zone: ref.zone, requestId }, body, signal);
    const outcome = outcomeOf(operation);
    if (outcome.kind === 'running') return true;
    if (outcome.kind === 'failed') {
      const ageMs = deps.clock.now() - outcome.endedAtMs;
      if (ageMs < FAILURE_FRESH_MS) throw failed(deps, outcome.class, outcome.reason);
      return false;
    }
  } catch (error) {
    if (!hasStatus(error, 409)) throw error;
  }
  // It exists, by this insert or by an earlier one: or has existed, until a moment ago.
  const found = await find(deps, ref, signal);
  if (found === undefined) return false;
  if (!isMadeFor(request, found.labels)) {
    throw failed(deps, 'Permanent', `${formatId(ref)} exists and belongs to somebody else`);
  }
  if (isLeaving(found)) {
    throw failed(deps, 'Transient', `${formatId(ref)} is still there, ${found.status}`);
  }
  return true;
}

async function find(
  { api }: CreateDeps,
  ref: InstanceRef,
  signal: AbortSignal,
): Promise<InstanceResource | undefined> {
  try {
    return await api.getInstance(ref, signal);
  } catch (error) {
    if (saysNotFound(error, ref)) return undefined;
    throw error;
  }
}

/** The provider's rule as it is configured; not waited for, since the machine takes longer. */
async function ensureFirewall(
  deps: CreateDeps,
  installation: string,
  signal: AbortSignal,
): Promise<void> {
  const { api, block } = deps;
  const { firewall } = block;
  if (firewall === undefined) return;
  const owner = { provider: deps.provider, installation };
  const name = ruleName(owner);
  const rule = buildRule(owner, block, firewall);
  try {
    const found = await api.getFirewall(name, signal);
    const finding = compareRule(found, owner, block, firewall);
    if (finding === 'foreign') {
      throw failed(deps, 'Permanent', `firewall rule ${name} exists and belongs to somebody else`);
    }
    if (finding === 'differs') await api.patchFirewall(name, rule, signal);
    return;
  } catch (error) {
    if (!hasStatus(error, 404)) throw error;
  }
  try {
    await api.insertFirewall(rule, signal);
  } catch (error) {
    // Another create was faster.
    if (!hasStatus(error, 409)) throw error;
  }
}

function failed(deps: CreateDeps, errorClass: ProviderErrorClass, message: string): ProviderError {
  return new ProviderError(errorClass, { op: 'create', provider: deps.provider }, message);
}
