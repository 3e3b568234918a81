/** Machines as pods of the embedded control plane: real Squids. */
import { LOCAL_PROVIDER } from '#test/integration/agent-world.ts';
import { watchMachines } from '#test/integration/machine-watch.ts';
import { COMMON_EFFECTS } from '../side-effects.ts';
import type { Site } from './site.ts';

export async function openKubernetesSite(): Promise<Site> {
  return {
    effects: [...COMMON_EFFECTS, 'pod created', 'ConfigMap created', 'pod deleted'],
    causes: {
      'pod created': ['create', 'create', 'edit'],
      'ConfigMap created': ['create', 'create', 'edit'],
      'pod deleted': ['edit', 'delete', 'delete'],
    },
    providers: [LOCAL_PROVIDER],
    specOf: (_name, port) => ({ provider: 'local', port }),
    intercept: () => {},
    watch: watchMachines,
    kill: (world, uid) => world.killSquid(uid),
    close: async () => {},
  };
}
