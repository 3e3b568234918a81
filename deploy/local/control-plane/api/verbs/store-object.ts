/** The last steps of every write: ownership of fields, the stored form, no-ops, the end of life. */
import { Buffer } from 'node:buffer';
import { type JsonObject, sameJson } from '../../json.ts';
import { trackUpdate } from '../../patch/track-update.ts';
import type { ApiResource } from '../../registry/api-resource.ts';
import type { ObjectRef } from '../../storage/object-store.ts';
import {
  isDeleting,
  metaNumber,
  metaStrings,
  resourceVersionOf,
  withMetadata,
} from '../object-meta.ts';
import { StatusError } from '../status-error.ts';
import { shown, timestamp, type VerbDeps } from './context.ts';
import type { UpdateOptions, WriteOptions } from './verbs.ts';

/** What etcd takes: patches cannot grow an object beyond it, however small each of them is. */
const OBJECT_BYTES_MAX = 1.5 * 1024 * 1024;
const UNKNOWN_MANAGER = 'unknown';

/** The form in which an object of this version is stored. */
export function toStored(resource: ApiResource, object: JsonObject): JsonObject {
  return resource.strategy.toStorage?.(object) ?? object;
}

/** The object with its managedFields brought up to date for a write other than apply. */
export function withOwnership(
  deps: VerbDeps,
  resource: ApiResource,
  before: JsonObject | undefined,
  after: JsonObject,
  options: UpdateOptions,
): JsonObject {
  return trackUpdate({
    before,
    // Both sides as they will be shown, or fields of the stored form alone would look removed.
    after: shown(resource, toStored(resource, after)),
    manager: options.fieldManager || UNKNOWN_MANAGER,
    time: timestamp(deps.clock),
    schema: resource.schema.root,
    subresource: options.subresource ?? '',
    statusSubresource: resource.statusSubresource,
  });
}

/** Stores a new object and returns it as shown. */
export function storeNew(
  { store }: VerbDeps,
  resource: ApiResource,
  ref: ObjectRef,
  object: JsonObject,
  { dryRun }: WriteOptions,
): JsonObject {
  const next = toStored(resource, object);
  assertSize(next);
  return shown(resource, dryRun === true ? next : store.put(ref, next));
}

/** Replaces `stored`; an equal object is not written, one that is free to go is removed. */
export function storeChanged(
  { store }: VerbDeps,
  resource: ApiResource,
  ref: ObjectRef,
  stored: JsonObject,
  object: JsonObject,
  { dryRun }: WriteOptions,
): JsonObject {
  const resourceVersion = resourceVersionOf(stored);
  const next = withMetadata(toStored(resource, object), { resourceVersion });
  if (sameJson(next, stored)) return shown(resource, stored);
  assertSize(next);
  if (dryRun === true) return shown(resource, next);
  if (!mayGo(resource, next)) return shown(resource, store.put(ref, next));
  store.remove(ref);
  return shown(resource, next);
}

function assertSize(object: JsonObject): void {
  if (Buffer.byteLength(JSON.stringify(object)) <= OBJECT_BYTES_MAX) return;
  throw new StatusError(413, 'RequestEntityTooLarge', 'etcdserver: request is too large');
}

/** Whether nothing keeps a deleted object any more. */
export function mayGo(resource: ApiResource, object: JsonObject): boolean {
  return (
    isDeleting(object) &&
    metaStrings(object, 'finalizers').length === 0 &&
    (metaNumber(object, 'deletionGracePeriodSeconds') ?? 0) === 0 &&
    resource.strategy.isHeld?.(object) !== true
  );
}
