/**
 * `delete`: an object goes at once unless finalizers, a grace period or its kind keep it; then it
 * carries a deletionTimestamp until the last of them is gone.
 */
import { isDeepStrictEqual } from 'node:util';
import { type JsonObject, objects } from '../../json.ts';
import type { ApiResource } from '../../registry/api-resource.ts';
import { hasEnded } from '../../registry/strategies/pod.ts';
import {
  isDeleting,
  metaNumber,
  metaStrings,
  nameOf,
  namespaceOf,
  objectAt,
  resourceVersionOf,
  stringAt,
  uidOf,
  withMetadata,
} from '../object-meta.ts';
import { forbidden, preconditionFailed, qualifiedResource, StatusError } from '../status-error.ts';
import { mustGet, refOf, shown, timestamp, type VerbDeps } from './context.ts';
import { listObjects } from './list.ts';
import { mayGo } from './store-object.ts';
import type { DeleteOptions, ListOptions, Preconditions, WriteResult } from './verbs.ts';

/** The garbage collector takes the owner out of its dependents before the owner goes. */
export const ORPHAN_FINALIZER = 'orphan';
/** The garbage collector deletes the dependents before the owner goes. */
export const FOREGROUND_FINALIZER = 'foregroundDeletion';

const POD_GRACE_SECONDS_DEFAULT = 30;

export function deleteObject(
  deps: VerbDeps,
  resource: ApiResource,
  namespace: string,
  name: string,
  options: DeleteOptions,
): WriteResult {
  const { store } = deps;
  const ref = refOf(resource, namespace, name);
  const stored = mustGet(deps, resource, ref);
  const why = resource.strategy.refuseDelete?.(stored);
  if (why !== undefined) {
    const message = `${qualifiedResource(resource)} "${name}" is forbidden: ${why}`;
    throw forbidden(resource, name, message);
  }
  assertPreconditions(resource, stored, options.preconditions);
  const isDryRun = options.dryRun === true;
  const marked = markDeleted(deps, resource, stored, options);
  if (mayGo(resource, marked)) {
    const last = isDryRun ? marked : store.remove(ref);
    const object = resource.strategy.gracefulDeletion
      ? shown(resource, withMetadata(marked, { resourceVersion: resourceVersionOf(last) }))
      : success(resource, stored);
    return { object, warnings: [] };
  }
  const isWritten = marked !== stored && !isDryRun;
  return { object: shown(resource, isWritten ? store.put(ref, marked) : marked), warnings: [] };
}

export function deleteSelected(
  deps: VerbDeps,
  resource: ApiResource,
  selection: ListOptions,
  options: DeleteOptions,
): WriteResult {
  const list = listObjects(deps, resource, selection);
  for (const object of objects(list['items'])) {
    try {
      deleteObject(deps, resource, namespaceOf(object), nameOf(object), options);
    } catch (error) {
      // Gone with an owner that was deleted before it.
      if (!(error instanceof StatusError && error.reason === 'NotFound')) throw error;
    }
  }
  return { object: list, warnings: [] };
}

function assertPreconditions(
  resource: ApiResource,
  stored: JsonObject,
  preconditions: Preconditions = {},
): void {
  const checks = [
    ['UID', preconditions.uid, uidOf(stored)],
    ['ResourceVersion', preconditions.resourceVersion, resourceVersionOf(stored)],
  ] as const;
  for (const [what, wanted, actual] of checks) {
    if (wanted === undefined || wanted === actual) continue;
    throw preconditionFailed(resource, nameOf(stored), what, wanted, actual);
  }
}

/** The object on its way out; the same object when another request has brought it there. */
function markDeleted(
  deps: VerbDeps,
  resource: ApiResource,
  stored: JsonObject,
  options: DeleteOptions,
): JsonObject {
  const grace = resource.strategy.gracefulDeletion ? podGrace(stored, options) : 0;
  const before = metaStrings(stored, 'finalizers');
  const finalizers = finalizersFor(before, options);
  if (isDeleting(stored)) {
    const pending = metaNumber(stored, 'deletionGracePeriodSeconds') ?? 0;
    // Only an earlier end is heard, and before it no change of what becomes of dependents.
    if (grace < pending) {
      return withMetadata(stored, {
        deletionTimestamp: timestamp(deps.clock, grace),
        deletionGracePeriodSeconds: grace,
      });
    }
    if (pending > 0 || isDeepStrictEqual(finalizers, before)) return stored;
    return withMetadata(stored, { finalizers: finalizers.length > 0 ? finalizers : undefined });
  }
  const generation = metaNumber(stored, 'generation');
  const marked = withMetadata(stored, {
    deletionTimestamp: timestamp(deps.clock, grace),
    deletionGracePeriodSeconds: grace,
    finalizers: finalizers.length > 0 ? finalizers : undefined,
    ...(generation !== undefined && { generation: generation + 1 }),
  });
  return resource.strategy.prepareForDelete?.(marked) ?? marked;
}

/** A pod that no node knows of, or that has ended, needs no grace. */
function podGrace(pod: JsonObject, options: DeleteOptions): number {
  const spec = objectAt(pod, 'spec');
  if (stringAt(spec, 'nodeName') === '' || hasEnded(pod)) return 0;
  const configured = spec['terminationGracePeriodSeconds'];
  const wanted = options.gracePeriodSeconds ?? configured;
  return typeof wanted === 'number' ? Math.max(wanted, 0) : POD_GRACE_SECONDS_DEFAULT;
}

function finalizersFor(present: readonly string[], options: DeleteOptions): string[] {
  const policy =
    options.propagationPolicy ??
    (options.orphanDependents === true
      ? 'Orphan'
      : options.orphanDependents === false
        ? 'Background'
        : undefined);
  if (policy === undefined) return [...present];
  const others = present.filter(
    (name) => name !== ORPHAN_FINALIZER && name !== FOREGROUND_FINALIZER,
  );
  if (policy === 'Orphan') return [...others, ORPHAN_FINALIZER];
  return policy === 'Foreground' ? [...others, FOREGROUND_FINALIZER] : others;
}

function success({ group, plural }: ApiResource, object: JsonObject): JsonObject {
  const details = {
    name: nameOf(object),
    ...(group !== '' && { group }),
    kind: plural,
    uid: uidOf(object),
  };
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
}
