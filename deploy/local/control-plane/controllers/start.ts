/** Everything that works on stored objects by itself, and the namespaces that always exist. */
import { createVerbs, type VerbDeps, type Verbs } from '../api/verbs/create-verbs.ts';
import { startCrdController } from '../registry/crd-controller.ts';
import { startEventExpiry } from './event-expiry.ts';
import { startGarbageCollector } from './garbage-collector.ts';
import { startNamespaceLifecycle } from './namespace-lifecycle.ts';

const NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

export interface RunningControllers {
  readonly verbs: Verbs;
  stop(): void;
}

/** Creates the verbs and starts the controllers on what is stored already. */
export function startControllers(deps: VerbDeps): RunningControllers {
  const verbs = createVerbs(deps);
  const shared = { ...deps, verbs };
  createNamespaces(deps, verbs);
  // Definitions first: the others look at custom resources too.
  const stops = [
    startCrdController(shared),
    startNamespaceLifecycle(shared),
    startGarbageCollector(shared),
    startEventExpiry(deps.store, deps.clock),
  ];
  return {
    verbs,
    stop: () => {
      for (const stop of stops) stop();
    },
  };
}

function createNamespaces({ store, registry }: VerbDeps, verbs: Verbs): void {
  const resource = registry.find('', 'v1', 'namespaces');
  if (resource === undefined) throw new Error('namespaces are not served');
  for (const name of NAMESPACES) {
    if (store.get({ resource: resource.storage, namespace: '', name }) !== undefined) continue;
    verbs.create(resource, '', { metadata: { name } }, { fieldManager: 'control-plane' });
  }
}
