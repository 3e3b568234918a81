/** `update`: a replacement keeps identity, keeps status and spec apart, and is counted. */
import { type JsonObject, sameJson } from '../../json.ts';
import type { ApiResource } from '../../registry/api-resource.ts';
import type { ObjectRef } from '../../storage/object-store.ts';
import {
  metadataOf,
  metaNumber,
  metaString,
  nameOf,
  namespaceOf,
  resourceVersionOf,
  uidOf,
  withFields,
  withMetadata,
} from '../object-meta.ts';
import { badRequest, conflict, invalid, notFound, preconditionFailed } from '../status-error.ts';
import { refOf, shown, timestamp, type VerbDeps } from './context.ts';
import { createObject } from './create.ts';
import { type Decoded, decodeObject } from './decode.ts';
import { finalizerWarnings, validateMetadataUpdate } from './metadata-rules.ts';
import { storeChanged, toStored, withOwnership } from './store-object.ts';
import type { UpdateOptions, WriteResult } from './verbs.ts';

export function updateObject(
  deps: VerbDeps,
  resource: ApiResource,
  namespace: string,
  name: string,
  body: JsonObject,
  options: UpdateOptions,
): WriteResult {
  const ref = refOf(resource, namespace, name);
  assertAddressed(resource, ref, body);
  const stored = deps.store.get(ref);
  if (stored === undefined) {
    const mayCreate = resource.strategy.createOnUpdate && resourceVersionOf(body) === '';
    if (!mayCreate || options.subresource !== undefined) throw notFound(resource, name);
    const named = withMetadata(body, { name });
    return createObject(deps, resource, namespace, named, options);
  }
  const decoded = decodeObject(resource, body, options.fieldValidation);
  return replaceObject(deps, resource, ref, stored, decoded, options);
}

/** Stores a replacement that was sent, or that a patch other than apply made of what is stored. */
export function replaceObject(
  deps: VerbDeps,
  resource: ApiResource,
  ref: ObjectRef,
  stored: JsonObject,
  { object, warnings }: Decoded,
  options: UpdateOptions,
): WriteResult {
  assertFresh(resource, stored, object);
  const next = prepareChanged(deps, resource, stored, object, options);
  const owned = withOwnership(deps, resource, shown(resource, stored), next, options);
  return {
    object: storeChanged(deps, resource, ref, stored, owned, options),
    warnings: [...warnings, ...finalizerWarnings(object)],
  };
}

/** A decoded replacement with what the server keeps of the stored object, valid. */
export function prepareChanged(
  deps: VerbDeps,
  resource: ApiResource,
  stored: JsonObject,
  object: JsonObject,
  { subresource }: UpdateOptions,
): JsonObject {
  const old = shown(resource, stored);
  const { strategy, schema } = resource;
  const writable = writablePart(resource, object, old, subresource);
  const time = timestamp(deps.clock);
  const isMain = subresource === undefined;
  const prepared = (isMain && strategy.prepareForUpdate?.(writable, old, { time })) || writable;
  const next = withGeneration(resource, prepared, old);
  const errors = [
    ...validateMetadataUpdate(resource, next, old),
    ...schema.validate(next, old),
    // A pod's spec is fixed but for its node, which is what a binding sets.
    ...((subresource !== 'binding' && strategy.validate?.(toStored(resource, next), stored)) || []),
  ];
  if (errors.length > 0) throw invalid(resource, nameOf(old), errors);
  return next;
}

/** Refuses a body about another object, or about an earlier one of the same name. */
export function assertFresh(resource: ApiResource, stored: JsonObject, object: JsonObject): void {
  const name = nameOf(stored);
  const [uid, resourceVersion] = [uidOf(object), resourceVersionOf(object)];
  if (uid !== '' && uid !== uidOf(stored)) {
    throw preconditionFailed(resource, name, 'UID', uid, uidOf(stored));
  }
  if (resourceVersion !== '' && resourceVersion !== resourceVersionOf(stored)) {
    throw conflict(resource, name);
  }
  if (resourceVersion === '' && !resource.strategy.unconditionalUpdate) {
    throw invalid(resource, name, [
      {
        type: 'FieldValueInvalid',
        field: 'metadata.resourceVersion',
        detail: '0x0: must be specified for an update',
      },
    ]);
  }
}

/** Refuses a body that names another object than the path; it may leave the names out. */
export function assertAddressed(resource: ApiResource, ref: ObjectRef, body: JsonObject): void {
  const [name, namespace] = [nameOf(body), namespaceOf(body)];
  if (name !== '' && name !== ref.name) {
    throw badRequest(
      `the name of the object (${name}) does not match the name on the URL (${ref.name})`,
    );
  }
  if (resource.namespaced && namespace !== '' && namespace !== ref.namespace) {
    throw badRequest(
      `the namespace of the object (${namespace}) does not match the namespace on the URL ` +
        `(${ref.namespace})`,
    );
  }
}

function writablePart(
  resource: ApiResource,
  object: JsonObject,
  old: JsonObject,
  subresource: UpdateOptions['subresource'],
): JsonObject {
  if (subresource === 'status') return onlyStatus(object, old);
  if (subresource === 'binding') return withFields(old, { spec: object['spec'] });
  return withIdentity(keepStatus(resource, object, old), old);
}

/** A write of the status changes nothing else, whatever else the body says. */
function onlyStatus(object: JsonObject, old: JsonObject): JsonObject {
  return withFields(old, { status: object['status'] });
}

function keepStatus(resource: ApiResource, object: JsonObject, old: JsonObject): JsonObject {
  return resource.statusSubresource ? withFields(object, { status: old['status'] }) : object;
}

/** What a client may leave out, but not change, and what is not the client's at all. */
function withIdentity(object: JsonObject, old: JsonObject): JsonObject {
  const before = metadataOf(old);
  const kept = ['name', 'namespace', 'uid', 'creationTimestamp'].map((field) => [
    field,
    metaString(object, field) || before[field],
  ]);
  const owned = [
    'resourceVersion',
    'generation',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'generateName',
  ].map((field) => [field, before[field]]);
  return withMetadata(object, { ...Object.fromEntries([...kept, ...owned]), selfLink: undefined });
}

function withGeneration(resource: ApiResource, object: JsonObject, old: JsonObject): JsonObject {
  if (!resource.strategy.tracksGeneration) return object;
  const ignored = {
    metadata: undefined,
    ...(resource.statusSubresource && { status: undefined }),
  };
  const isSame = sameJson(withFields(object, ignored), withFields(old, ignored));
  const generation = metaNumber(old, 'generation') ?? 1;
  return withMetadata(object, { generation: isSame ? generation : generation + 1 });
}
