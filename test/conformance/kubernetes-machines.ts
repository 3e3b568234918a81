/**
 * What the suite does to pods behind the provider's back, as an administrator. A phase that nobody
 * knows is not among it: the API server refuses one, so the table of states is tested by itself.
 */
import { z } from 'zod';
import type { KubeClient } from '#agent/kube/client.ts';
import { isKubeError } from '#agent/kube/errors.ts';
import { CONFIG_MAPS, createResource, PODS } from '#agent/kube/resource.ts';
import { buildPod } from '#agent/providers/kubernetes/pod.ts';
import type { Mark } from '#agent/providers/provider.ts';
import { configWith } from '#test/agent/providers/kubernetes/block.ts';
import type { Backend } from './backend.ts';

/** A node that is not there: nobody starts what is bound to it. */
const NOWHERE = 'nowhere';
const FINALIZER = 'conformance.example.com/hold';
const MERGE_PATCH = 'application/merge-patch+json';

type Machines = Pick<
  Required<Backend>,
  'machines' | 'secondary' | 'makeUnmarked' | 'makeMarked' | 'holdDeletion'
>;

const namedSchema = z.looseObject({ metadata: z.looseObject({ name: z.string() }) });

export function kubernetesMachines(admin: KubeClient, namespace: string): Machines {
  const pods = createResource(admin, PODS, (object) => namedSchema.parse(object));
  const configMaps = createResource(admin, CONFIG_MAPS, (object) => namedSchema.parse(object));
  const idOf = (name: string) => `${namespace}/${name}`;

  async function make(name: string, mark: Mark | undefined): Promise<string> {
    const { uid, installation } = mark ?? { uid: '', installation: '' };
    const port = 3128;
    const request = {
      name,
      uid,
      installation,
      namespace,
      proxyName: 'theirs',
      placement: {},
      port,
    };
    const pod = buildPod(request, configWith().kubernetes);
    await pods.create(namespace, {
      ...pod,
      metadata: { ...pod.metadata, ...(mark === undefined ? { labels: { app: 'other' } } : {}) },
      spec: { ...pod.spec, nodeName: NOWHERE },
    });
    return idOf(name);
  }

  async function setFinalizers(name: string, finalizers: string[] | null): Promise<void> {
    const body = { metadata: { finalizers } };
    await pods.patch({ namespace, name }, { type: MERGE_PATCH, body });
  }

  return {
    async machines(name) {
      const found = await pods.list({ namespace, fieldSelector: `metadata.name=${name}` });
      return found.map((pod) => JSON.stringify(pod));
    },
    async secondary(name) {
      const found = await configMaps.list({ namespace, fieldSelector: `metadata.name=${name}` });
      return found.map(({ metadata }) => `ConfigMap ${metadata.name}`);
    },
    makeUnmarked: (name) => make(name, undefined),
    makeMarked: (name, mark) => make(name, mark),
    async holdDeletion(id) {
      const name = id.slice(namespace.length + 1);
      await setFinalizers(name, [FINALIZER]);
      return async () => {
        try {
          await setFinalizers(name, null);
        } catch (error) {
          if (!isKubeError(error, 'NotFound')) throw error;
        }
      };
    },
  };
}
