/**
 * The gcp provider: an instance is a Compute Engine VM, whose zone is the Proxy's and whose project
 * is the provider's. Inserts and deletions are submitted and not waited for; what became of them
 * tells `get`. The mark is in the insert itself, as labels.
 *
 * An insert that was accepted may fail later (quota, stock-out, a bad image), and then the instance
 * is not there, as if it had never been asked for. `get` looks its operation up and says why.
 */
import type { Clock } from '#shared/clock.ts';
import { classified } from '../classified.ts';
import type { GcpProviderConfig } from '../config.ts';
import { ProviderError, type ProviderErrorClass, type ProviderOp } from '../errors.ts';
import { isMarked } from '../mark.ts';
import type { Checker, Instance, Provider } from '../provider.ts';
import { checkProject } from './check.ts';
import { classify, saysNotFound } from './classify.ts';
import { type ComputeApi, ComputeError } from './compute-api.ts';
import { createInstance } from './create.ts';
import { formatId, type InstanceRef, parseId } from './id.ts';
import { withoutMark } from './labels.ts';
import { listInstances } from './list.ts';
import { makesOrRemoves, outcomeOf } from './operation.ts';
import { instanceFrom } from './state.ts';

/** Receives one debug line for each call, and a warning for what a list lacks. */
export interface GcpLog {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface GcpProviderDeps {
  readonly api: ComputeApi;
  readonly clock: Pick<Clock, 'now'>;
  readonly log?: GcpLog;
}

/** Operations of one instance that are looked at, the newest first. */
const OPERATIONS_MAX = 20;

/** Dials nothing; every call goes through `deps.api`, which is closed with the provider. */
export function createGcpProvider(
  config: GcpProviderConfig,
  { api, clock, log }: GcpProviderDeps,
): Provider & Checker {
  const { name, type, creationsPerMinute, gcp: block } = config;
  const call = classified(name, classify, log);

  function failure(
    op: ProviderOp,
    errorClass: ProviderErrorClass,
    message: string,
    neverMade = false,
  ): ProviderError {
    return new ProviderError(errorClass, { op, provider: name }, message, { neverMade });
  }

  function refOf(op: ProviderOp, id: string): InstanceRef {
    const ref = parseId(id);
    if (ref !== undefined) return ref;
    throw failure(op, 'Permanent', `"${id}" is not an id of this provider`);
  }

  async function getInstance(id: string, signal: AbortSignal): Promise<Instance> {
    const ref = refOf('get', id);
    try {
      return instanceFrom(await api.getInstance(ref, signal), ref.zone, block.addressMode);
    } catch (error) {
      if (!saysNotFound(error, ref)) throw error;
    }
    throw await explainAbsence(ref, signal);
  }

  /** Gone, not there yet, or never made: the operations of the instance know. */
  async function explainAbsence(ref: InstanceRef, signal: AbortSignal): Promise<ProviderError> {
    const id = formatId(ref);
    // The newest of all kinds: after a deletion, what came before it explains nothing.
    const filter = `targetLink eq ".*/zones/${ref.zone}/instances/${ref.name}"`;
    const query = { zone: ref.zone, filter, maxResults: OPERATIONS_MAX };
    const operations = await api.listZoneOperations(query, signal);
    const latest = operations.find((operation) => makesOrRemoves(ref.name, operation));
    if (latest?.operationType !== 'insert') {
      return failure('get', 'NotFound', `${id} is gone`);
    }
    const outcome = outcomeOf(latest);
    switch (outcome.kind) {
      case 'running':
        return failure('get', 'Transient', `${id} is not there yet: ${latest.name} runs`);
      case 'succeeded':
        return failure('get', 'NotFound', `${id} is gone`);
      case 'failed':
        return failure('get', outcome.class, `${id} was not made: ${outcome.reason}`, true);
    }
  }

  async function deleteInstance(id: string, signal: AbortSignal): Promise<void> {
    const ref = refOf('delete', id);
    const found = await unlessGone(ref, api.getInstance(ref, signal));
    if (found === undefined) return;
    if (!isMarked(found.labels)) {
      throw failure('delete', 'Permanent', `${id} is not one of ours`);
    }
    try {
      await unlessGone(ref, api.deleteInstance(ref, signal));
    } catch (error) {
      // Its deletion, or another change of it, is under way; whoever polls asks again.
      const reasons = error instanceof ComputeError ? error.reasons : [];
      if (!reasons.includes('resourceNotReady')) throw error;
    }
  }

  async function disown(id: string, signal: AbortSignal): Promise<void> {
    const ref = refOf('disown', id);
    const found = await unlessGone(ref, api.getInstance(ref, signal));
    if (found === undefined || !isMarked(found.labels)) return;
    const { labelFingerprint } = found;
    const labels = withoutMark(found.labels);
    const set = api.setLabels(ref, { labels, labelFingerprint }, signal);
    const operation = await unlessGone(ref, set);
    if (operation === undefined) return;
    // Until it is done a sweep would find the machine, whose Proxy is about to go.
    const at = { zone: ref.zone, operation: operation.name };
    const outcome = outcomeOf(await api.waitZoneOperation(at, signal));
    if (outcome.kind === 'succeeded') return;
    const why = outcome.kind === 'failed' ? outcome.reason : 'it takes long';
    const errorClass = outcome.kind === 'failed' ? outcome.class : 'Transient';
    throw failure('disown', errorClass, `the labels of ${id} are still on: ${why}`);
  }

  const onUnread = (scopes: readonly string[]) =>
    log?.warn({ provider: name, scopes }, 'zones cannot be read; their instances are unknown');

  return {
    name,
    type,
    creationsPerMinute,
    create(request, signal) {
      const id = formatId({ zone: request.placement.zone ?? '', name: request.name });
      const deps = { provider: name, block, api, clock };
      return call('create', id, () => createInstance(deps, request, signal));
    },
    get: (id, signal) => call('get', id, () => getInstance(id, signal)),
    delete: (id, signal) => call('delete', id, () => deleteInstance(id, signal)),
    disown: (id, signal) => call('disown', id, () => disown(id, signal)),
    listByTag: (signal) =>
      call('list', '', () => listInstances({ provider: name, block, api, onUnread }, signal)),
    check: (signal) => checkProject(api, block.project, signal),
    close: () => api.close(),
  };
}

/** What `call` gives; undefined when the API says that the instance is not there. */
async function unlessGone<T>(ref: InstanceRef, call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (saysNotFound(error, ref)) return undefined;
    throw error;
  }
}
