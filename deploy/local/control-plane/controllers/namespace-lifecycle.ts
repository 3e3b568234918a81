/** Empties a namespace that is being deleted and lets it go when nothing is left in it. */
import { isDeleting, metaStrings, nameOf, objectAt, withFields } from '../api/object-meta.ts';
import type { JsonObject } from '../json.ts';
import type { Change } from '../storage/object-store.ts';
import type { ControllerDeps } from './garbage-collector.ts';

const NAMESPACES = 'namespaces';

/** Starts with what is stored and follows changes; returns how to stop. */
export function startNamespaceLifecycle(deps: ControllerDeps): () => void {
  const { store } = deps;
  const stop = store.subscribe(({ type, ref }: Change) => {
    if (ref.resource === NAMESPACES) {
      if (type !== 'DELETED') empty(deps, ref.name);
    } else if (type === 'DELETED' && ref.namespace !== '') release(deps, ref.namespace);
  });
  for (const namespace of store.list(NAMESPACES)) empty(deps, nameOf(namespace));
  return stop;
}

function empty(deps: ControllerDeps, name: string): void {
  const { store, registry, verbs } = deps;
  const namespace = find(deps, name);
  if (namespace === undefined || !isDeleting(namespace)) return;
  for (const resource of registry.stored()) {
    if (!resource.namespaced || store.count(resource.storage, name) === 0) continue;
    verbs.deleteCollection(resource, { namespace: name }, { propagationPolicy: 'Background' });
  }
  release(deps, name);
}

/** Nothing of any kind is left, whether it is still served or not. */
function release(deps: ControllerDeps, name: string): void {
  const { store } = deps;
  const namespace = find(deps, name);
  if (namespace === undefined || !isDeleting(namespace)) return;
  if (store.resources().some((resource) => store.count(resource, name) > 0)) return;
  const ref = { resource: NAMESPACES, namespace: '', name };
  if (metaStrings(namespace, 'finalizers').length === 0) {
    store.remove(ref);
    return;
  }
  const spec = objectAt(namespace, 'spec');
  if (spec['finalizers'] === undefined) return;
  store.put(ref, { ...namespace, spec: withFields(spec, { finalizers: undefined }) });
}

function find({ store }: ControllerDeps, name: string): JsonObject | undefined {
  return store.get({ resource: NAMESPACES, namespace: '', name });
}
