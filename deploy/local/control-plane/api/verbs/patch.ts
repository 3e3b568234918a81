/** `patch`: the four patch types end in the same checks as an update, and apply may create. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../json.ts';
import { applyPatch } from '../../patch/apply.ts';
import { conflictCauses, conflictMessage } from '../../patch/conflicts.ts';
import { applyJsonPatch } from '../../patch/json-patch.ts';
import { applyMergePatch } from '../../patch/merge-patch.ts';
import { PatchError, type PatchErrorKind } from '../../patch/patch-error.ts';
import { applyStrategicMergePatch } from '../../patch/strategic-merge-patch.ts';
import type { ApiResource } from '../../registry/api-resource.ts';
import type { ObjectRef } from '../../storage/object-store.ts';
import { metadataOf, resourceVersionOf, uidOf, withMetadata } from '../object-meta.ts';
import {
  applyConflict,
  badRequest,
  conflict,
  notFound,
  StatusError,
  unsupportedMediaType,
} from '../status-error.ts';
import { mustGet, refOf, shown, timestamp, type VerbDeps } from './context.ts';
import { prepareNew, storePrepared } from './create.ts';
import { decodeObject, strictPatchError } from './decode.ts';
import { finalizerWarnings } from './metadata-rules.ts';
import { CUSTOM_PATCH_MEDIA_TYPES, type PatchType } from './patch-types.ts';
import { storeChanged } from './store-object.ts';
import { assertAddressed, assertFresh, prepareChanged, replaceObject } from './update.ts';
import type { PatchOptions, WriteResult } from './verbs.ts';

const REASONS: Record<PatchErrorKind, string> = {
  malformed: 'BadRequest',
  unprocessable: 'Invalid',
  'too-large': 'RequestEntityTooLarge',
  untyped: 'InternalError',
};

export function patchObject(
  deps: VerbDeps,
  resource: ApiResource,
  namespace: string,
  name: string,
  patchType: PatchType,
  body: JsonValue,
  options: PatchOptions,
): WriteResult {
  const ref = refOf(resource, namespace, name);
  if (patchType === 'apply') return applyObject(deps, resource, ref, body, options);
  if (patchType === 'strategic' && resource.custom) {
    throw unsupportedMediaType(CUSTOM_PATCH_MEDIA_TYPES);
  }
  const stored = mustGet(deps, resource, ref);
  const live = shown(resource, stored);
  const patched = patchErrors(() => patchedObject(resource, patchType, live, body));
  assertAddressed(resource, ref, patched);
  const onStrict = strictPatchError(patched);
  const decoded = decodeObject(resource, patched, options.fieldValidation, onStrict);
  return replaceObject(deps, resource, ref, stored, decoded, options);
}

function patchedObject(
  resource: ApiResource,
  patchType: Exclude<PatchType, 'apply'>,
  live: JsonObject,
  body: JsonValue,
): JsonObject {
  switch (patchType) {
    case 'json':
      return applyJsonPatch(live, body);
    case 'merge':
      return applyMergePatch(live, body);
    case 'strategic':
      return applyStrategicMergePatch(live, body, resource.schema.root);
  }
}

function applyObject(
  deps: VerbDeps,
  resource: ApiResource,
  ref: ObjectRef,
  body: JsonValue,
  options: PatchOptions,
): WriteResult {
  if (!isJsonObject(body)) throw badRequest('an apply patch is an object');
  assertAddressed(resource, ref, body);
  const applied = withMetadata(body, {
    name: ref.name,
    namespace: resource.namespaced ? ref.namespace : undefined,
  });
  const stored = deps.store.get(ref);
  if (stored === undefined && options.subresource !== undefined) {
    throw notFound(resource, ref.name);
  }
  assertUnchanged(resource, stored, body, ref);
  const live = stored === undefined ? undefined : shown(resource, stored);
  const merged = mergeApplied(deps, resource, live, applied, options);
  const decoded = decodeObject(resource, merged, options.fieldValidation, strictPatchError(merged));
  if (stored === undefined) {
    const created = prepareNew(deps, resource, ref.namespace, decoded.object);
    return storePrepared(deps, resource, created, options, decoded.warnings);
  }
  const next = prepareChanged(deps, resource, stored, decoded.object, options);
  // Written by applyPatch; a write of the status alone takes only the status over otherwise.
  const managedFields = metadataOf(decoded.object)['managedFields'];
  const owned = withMetadata(next, { managedFields });
  return {
    object: storeChanged(deps, resource, ref, stored, owned, options),
    warnings: [...decoded.warnings, ...finalizerWarnings(decoded.object)],
  };
}

/** A configuration that names a uid or resourceVersion is meant for that very object. */
function assertUnchanged(
  resource: ApiResource,
  stored: JsonObject | undefined,
  applied: JsonObject,
  ref: ObjectRef,
): void {
  const [uid, resourceVersion] = [uidOf(applied), resourceVersionOf(applied)];
  if (stored === undefined) {
    if (uid !== '') {
      const why = `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`;
      throw conflict(resource, ref.name, why);
    }
    if (resourceVersion !== '') throw notFound(resource, ref.name);
    return;
  }
  const version = resourceVersion || resourceVersionOf(stored);
  assertFresh(resource, stored, withMetadata(applied, { resourceVersion: version }));
}

function mergeApplied(
  deps: VerbDeps,
  resource: ApiResource,
  live: JsonObject | undefined,
  applied: JsonObject,
  options: PatchOptions,
): JsonObject {
  const { object, conflicts } = patchErrors(() =>
    applyPatch({
      live,
      applied,
      manager: options.fieldManager ?? '',
      force: options.force === true,
      time: timestamp(deps.clock),
      schema: resource.schema.root,
      subresource: options.subresource ?? '',
      statusSubresource: resource.statusSubresource,
    }),
  );
  if (conflicts.length > 0) {
    throw applyConflict(conflictMessage(conflicts), conflictCauses(conflicts));
  }
  return object;
}

/** Faults of a patch as the server answers them. */
function patchErrors<T>(patch: () => T): T {
  try {
    return patch();
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    throw new StatusError(error.code, REASONS[error.kind], error.message);
  }
}
