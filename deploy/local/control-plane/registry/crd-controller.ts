/**
 * Serves what CustomResourceDefinitions define: accepts their names, marks them established, and
 * empties and withdraws them when they are deleted.
 *
 * It follows the store synchronously, so a definition is served when its creation is answered.
 */
import type { Clock } from '#shared/clock.ts';
import {
  isDeleting,
  metaStrings,
  nameOf,
  objectAt,
  stringAt,
  withMetadata,
} from '../api/object-meta.ts';
import { timestamp } from '../api/verbs/context.ts';
import type { Verbs } from '../api/verbs/verbs.ts';
import { type JsonObject, objects, sameJson, strings } from '../json.ts';
import type { Change, ObjectRef, ObjectStore } from '../storage/object-store.ts';
import { CRD_STORAGE } from './api-resource.ts';
import { crdNames, customResources, storageVersion, storedResource } from './custom-resources.ts';
import type { ResourceRegistry } from './resource-registry.ts';

const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

export interface CrdControllerDeps {
  readonly store: ObjectStore;
  readonly registry: ResourceRegistry;
  readonly verbs: Verbs;
  readonly clock: Clock;
}

/** Serves the definitions that are stored already and follows changes; returns how to stop. */
export function startCrdController(deps: CrdControllerDeps): () => void {
  const { store } = deps;
  const onChange = ({ type, ref, object }: Change) => {
    if (ref.resource === CRD_STORAGE) {
      if (type === 'DELETED') withdraw(deps, ref.name);
      else syncDefinition(deps, object);
    } else if (type === 'DELETED') {
      const crd = store.get(crdRef(ref.resource));
      if (crd !== undefined && isDeleting(crd)) releaseWhenEmpty(deps, crd);
    }
  };
  const stop = store.subscribe(onChange);
  for (const crd of store.list(CRD_STORAGE)) syncDefinition(deps, crd);
  return stop;
}

function crdRef(name: string): ObjectRef {
  return { resource: CRD_STORAGE, namespace: '', name };
}

/** Another definition may have waited for the names that are free now. */
function withdraw(deps: CrdControllerDeps, name: string): void {
  deps.registry.replaceCustom(name, []);
  for (const crd of deps.store.list(CRD_STORAGE)) syncDefinition(deps, crd);
}

function syncDefinition(deps: CrdControllerDeps, crd: JsonObject): void {
  const { store, registry, verbs } = deps;
  const name = nameOf(crd);
  // A later change follows and does the work.
  if (store.get(crdRef(name)) !== crd) return;
  const clash = nameClash(registry, crd);
  if (clash === undefined) registry.replaceCustom(name, customResources(crd));
  if (isDeleting(crd)) {
    verbs.deleteCollection(storedResource(crd), {}, {});
    releaseWhenEmpty(deps, crd);
    return;
  }
  const next = withFinalizer({ ...crd, status: nextStatus(deps, crd, clash) });
  if (!sameJson(next, crd)) store.put(crdRef(name), next);
}

function nameClash(registry: ResourceRegistry, crd: JsonObject): string | undefined {
  const { plural, singular, shortNames } = crdNames(crd);
  const group = stringAt(objectAt(crd, 'spec'), 'group');
  return registry.nameTaken(nameOf(crd), group, [plural, singular, ...shortNames]);
}

function withFinalizer(crd: JsonObject): JsonObject {
  const finalizers = metaStrings(crd, 'finalizers');
  if (finalizers.includes(CLEANUP_FINALIZER)) return crd;
  return withMetadata(crd, { finalizers: [...finalizers, CLEANUP_FINALIZER] });
}

function releaseWhenEmpty({ store, registry }: CrdControllerDeps, crd: JsonObject): void {
  const name = nameOf(crd);
  if (store.count(name) > 0) return;
  const ref = crdRef(name);
  const finalizers = metaStrings(crd, 'finalizers').filter((one) => one !== CLEANUP_FINALIZER);
  registry.replaceCustom(name, []);
  if (finalizers.length === 0) store.remove(ref);
  else if (finalizers.length < metaStrings(crd, 'finalizers').length) {
    store.put(ref, withMetadata(crd, { finalizers }));
  }
}

function nextStatus(
  { clock }: CrdControllerDeps,
  crd: JsonObject,
  clash: string | undefined,
): JsonObject {
  const status = objectAt(crd, 'status');
  const known = strings(status.storedVersions);
  const stored = storageVersion(crd);
  const accepted = condition('NamesAccepted', clash === undefined, {
    reason: clash === undefined ? 'NoConflicts' : 'NamesConflict',
    message: clash === undefined ? 'no conflicts found' : `"${clash}" is already in use`,
  });
  const established = condition('Established', clash === undefined, {
    reason: clash === undefined ? 'InitialNamesAccepted' : 'NotAccepted',
    message:
      clash === undefined ? 'the initial names have been accepted' : 'not all names are accepted',
  });
  const before = objects(status.conditions);
  const time = timestamp(clock);
  return {
    ...status,
    conditions: [accepted, established].map((one) => withTransition(one, before, time)),
    acceptedNames: clash === undefined ? acceptedNames(crd) : objectAt(status, 'acceptedNames'),
    storedVersions: known.includes(stored) ? known : [...known, stored],
  };
}

function condition(
  type: string,
  isTrue: boolean,
  why: { readonly reason: string; readonly message: string },
): JsonObject {
  return { type, status: isTrue ? 'True' : 'False', ...why };
}

function withTransition(next: JsonObject, before: readonly JsonObject[], time: string): JsonObject {
  const old = before.find((one) => one.type === next.type);
  const isSame = old !== undefined && old.status === next.status;
  const since = isSame ? stringAt(old, 'lastTransitionTime') : '';
  return { lastTransitionTime: since || time, ...next };
}

function acceptedNames(crd: JsonObject): JsonObject {
  const { plural, singular, kind, listKind, shortNames, categories } = crdNames(crd);
  return {
    plural,
    singular,
    kind,
    listKind,
    ...(shortNames.length > 0 && { shortNames: [...shortNames] }),
    ...(categories.length > 0 && { categories: [...categories] }),
  };
}
