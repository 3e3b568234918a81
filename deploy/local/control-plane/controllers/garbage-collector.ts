/**
 * Deletes what an owner leaves behind, as the real garbage collector does in the background: an
 * object goes when none of its owners exists any more. It follows the store synchronously.
 */
import {
  isDeleting,
  metadataOf,
  metaStrings,
  nameOf,
  namespaceOf,
  stringAt,
  uidOf,
  withMetadata,
} from '../api/object-meta.ts';
import { refOf } from '../api/verbs/context.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '../api/verbs/delete.ts';
import { mayGo } from '../api/verbs/store-object.ts';
import type { Verbs } from '../api/verbs/verbs.ts';
import { type JsonObject, objects } from '../json.ts';
import type { ApiResource } from '../registry/api-resource.ts';
import type { ResourceRegistry } from '../registry/resource-registry.ts';
import {
  type Change,
  entryKey,
  type ObjectRef,
  type ObjectStore,
} from '../storage/object-store.ts';

export interface ControllerDeps {
  readonly store: ObjectStore;
  readonly registry: ResourceRegistry;
  readonly verbs: Verbs;
}

/** Starts with what is stored and follows changes; returns how to stop. */
export function startGarbageCollector(deps: ControllerDeps): () => void {
  const collector = new GarbageCollector(deps);
  return collector.start();
}

class GarbageCollector {
  readonly #deps: ControllerDeps;
  /** Objects that name an owner, by the owner's uid. */
  readonly #dependents = new Map<string, Map<string, ObjectRef>>();

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  start(): () => void {
    const { store } = this.#deps;
    const refs = store.resources().flatMap((resource) =>
      store.list(resource).map((object) => ({
        resource,
        namespace: namespaceOf(object),
        name: nameOf(object),
      })),
    );
    for (const ref of refs) this.#index(ref, undefined, store.get(ref));
    const stop = store.subscribe((change) => this.#onChange(change));
    for (const ref of refs) this.#check(ref);
    return stop;
  }

  #onChange({ type, ref, object, previous }: Change): void {
    this.#index(ref, previous, type === 'DELETED' ? undefined : object);
    if (type !== 'DELETED') {
      this.#check(ref);
      return;
    }
    for (const dependent of this.#dependentsOf(uidOf(object))) this.#check(dependent);
    // An owner in foreground deletion may have waited for this one.
    for (const owner of ownersOf(object)) {
      const found = this.#findOwner(owner, ref.namespace);
      if (found !== undefined) this.#finalize(found.resource, found.ref, found.object);
    }
  }

  #index(ref: ObjectRef, before: JsonObject | undefined, after: JsonObject | undefined): void {
    const key = `${ref.resource}/${entryKey(ref)}`;
    for (const owner of ownersOf(before)) {
      const known = this.#dependents.get(stringAt(owner, 'uid'));
      known?.delete(key);
      if (known?.size === 0) this.#dependents.delete(stringAt(owner, 'uid'));
    }
    for (const owner of ownersOf(after)) {
      const uid = stringAt(owner, 'uid');
      const known = this.#dependents.get(uid) ?? new Map<string, ObjectRef>();
      this.#dependents.set(uid, known.set(key, ref));
    }
  }

  #dependentsOf(uid: string): ObjectRef[] {
    return [...(this.#dependents.get(uid)?.values() ?? [])];
  }

  /** Does what an object needs: ends its finalization, or deletes it when its owners are gone. */
  #check(ref: ObjectRef): void {
    const { store, registry, verbs } = this.#deps;
    const object = store.get(ref);
    const resource = registry.storedAs(ref.resource);
    if (object === undefined || resource === undefined) return;
    if (isDeleting(object)) {
      this.#finalize(resource, ref, object);
      return;
    }
    const owners = ownersOf(object);
    const absent = owners.filter((owner) => this.#isAbsent(owner, ref.namespace));
    if (absent.length === 0) return;
    if (absent.length === owners.length) {
      verbs.delete(resource, ref.namespace, ref.name, { propagationPolicy: 'Background' });
    } else
      this.#dropOwners(
        ref,
        object,
        absent.map((owner) => stringAt(owner, 'uid')),
      );
  }

  /** Whether the owner is known not to exist; of an unknown kind nothing is known. */
  #isAbsent(owner: JsonObject, namespace: string): boolean {
    const kind = this.#deps.registry.findKind(
      stringAt(owner, 'apiVersion'),
      stringAt(owner, 'kind'),
    );
    return kind !== undefined && this.#findOwner(owner, namespace) === undefined;
  }

  #findOwner(
    owner: JsonObject,
    namespace: string,
  ): { resource: ApiResource; ref: ObjectRef; object: JsonObject } | undefined {
    const { store, registry } = this.#deps;
    const resource = registry.findKind(stringAt(owner, 'apiVersion'), stringAt(owner, 'kind'));
    if (resource === undefined) return undefined;
    const ref = refOf(resource, namespace, stringAt(owner, 'name'));
    const object = store.get(ref);
    if (object === undefined || uidOf(object) !== stringAt(owner, 'uid')) return undefined;
    return { resource, ref, object };
  }

  #finalize(resource: ApiResource, ref: ObjectRef, object: JsonObject): void {
    if (!isDeleting(object)) return;
    const finalizers = metaStrings(object, 'finalizers');
    const dependents = this.#dependentsOf(uidOf(object));
    if (finalizers.includes(ORPHAN_FINALIZER)) {
      for (const dependent of dependents) this.#orphan(dependent, uidOf(object));
      this.#release(resource, ref, ORPHAN_FINALIZER);
    } else if (finalizers.includes(FOREGROUND_FINALIZER)) {
      for (const dependent of dependents) this.#deleteDependent(dependent);
      if (!this.#dependentsOf(uidOf(object)).some((one) => this.#blocks(one, uidOf(object)))) {
        this.#release(resource, ref, FOREGROUND_FINALIZER);
      }
    }
  }

  #deleteDependent(ref: ObjectRef): void {
    const { store, registry, verbs } = this.#deps;
    const object = store.get(ref);
    const resource = registry.storedAs(ref.resource);
    if (object === undefined || resource === undefined || isDeleting(object)) return;
    verbs.delete(resource, ref.namespace, ref.name, { propagationPolicy: 'Foreground' });
  }

  #blocks(ref: ObjectRef, ownerUid: string): boolean {
    return ownersOf(this.#deps.store.get(ref)).some(
      (owner) => stringAt(owner, 'uid') === ownerUid && owner['blockOwnerDeletion'] === true,
    );
  }

  #orphan(ref: ObjectRef, ownerUid: string): void {
    const object = this.#deps.store.get(ref);
    if (object !== undefined) this.#dropOwners(ref, object, [ownerUid]);
  }

  #dropOwners(ref: ObjectRef, object: JsonObject, uids: readonly string[]): void {
    const kept = ownersOf(object).filter((owner) => !uids.includes(stringAt(owner, 'uid')));
    const ownerReferences = kept.length > 0 ? kept : undefined;
    this.#deps.store.put(ref, withMetadata(object, { ownerReferences }));
  }

  /** Takes a finalizer off; the last one takes the object with it. */
  #release(resource: ApiResource, ref: ObjectRef, finalizer: string): void {
    const { store } = this.#deps;
    const object = store.get(ref);
    if (object === undefined) return;
    const left = metaStrings(object, 'finalizers').filter((name) => name !== finalizer);
    const finalizers = left.length > 0 ? left : undefined;
    const next = withMetadata(object, { finalizers });
    if (mayGo(resource, next)) store.remove(ref);
    else store.put(ref, next);
  }
}

function ownersOf(object: JsonObject | undefined): JsonObject[] {
  return object === undefined ? [] : objects(metadataOf(object)['ownerReferences']);
}
