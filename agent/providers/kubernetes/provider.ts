/**
 * The kubernetes provider: an instance is a Squid pod in the namespace of its Proxy, with the
 * configuration in a ConfigMap of the same name.
 *
 * The pod is made first and the ConfigMap second, owned by the pod. The pod carries the mark, so
 * whatever exists is found by it; a crash in between leaves a pod that waits for its ConfigMap (the
 * kubelet retries the mount) until `create` is repeated or the pod is deleted. The other order
 * could leave a ConfigMap that nobody owns. Placement and user-data do not apply to pods.
 */

import { z } from 'zod';
import type { KubeClient } from '#agent/kube/client.ts';
import { isKubeError } from '#agent/kube/errors.ts';
import { CONFIG_MAPS, createResource, PODS } from '#agent/kube/resource.ts';
import { INSTALLATION_LABEL, MANAGED_LABEL, UID_LABEL } from '#shared/crd/names.ts';
import type { KubernetesProviderConfig } from '../config.ts';
import { ProviderError, type ProviderOp } from '../errors.ts';
import type { Checker, CreateRequest, Provider } from '../provider.ts';
import { checkApiServer } from './check.ts';
import { classify } from './classify.ts';
import { formatId, type PodRef, parseId } from './id.ts';
import { buildConfigMap, buildPod } from './pod.ts';
import { instanceFromPod, isMarked, markOf, type Pod, parsePod } from './state.ts';

export interface KubernetesProviderDeps {
  readonly client: KubeClient;
  /** The only namespace that the agent may look into; absent: all of them. */
  readonly namespace?: string;
}

const configMapSchema = z.object({
  metadata: z.object({
    uid: z.string(),
    labels: z.record(z.string(), z.string()).nullish(),
    ownerReferences: z.array(z.object({ uid: z.string() })).nullish(),
  }),
});

/** Dials nothing; every call goes through `client`. */
export function createKubernetesProvider(
  config: KubernetesProviderConfig,
  deps: KubernetesProviderDeps,
): Provider & Checker {
  const { name, type, kubernetes: block } = config;
  const pods = createResource(deps.client, PODS, parsePod);
  const configMaps = createResource(deps.client, CONFIG_MAPS, (object) =>
    configMapSchema.parse(object),
  );

  /** Runs `call`, every failure of it as a ProviderError. */
  async function classified<T>(op: ProviderOp, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      throw classify(error, { op, provider: name });
    }
  }

  function permanent(op: ProviderOp, message: string): ProviderError {
    return new ProviderError('Permanent', { op, provider: name }, message);
  }

  function refOf(op: ProviderOp, id: string): PodRef {
    const ref = parseId(id);
    if (ref === undefined) throw permanent(op, `"${id}" is not an id of this provider`);
    return ref;
  }

  async function ensurePod(request: CreateRequest, signal: AbortSignal): Promise<Pod> {
    try {
      return await pods.create(request.namespace, buildPod(request, block), signal);
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error;
    }
    const pod = await pods.get(request, signal);
    const { uid, installation } = markOf(pod);
    const isOurs = uid === request.uid && installation === request.installation;
    if (!isMarked(pod) || !isOurs) {
      throw permanent('create', `pod ${formatId(request)} exists and belongs to somebody else`);
    }
    if (pod.metadata.deletionTimestamp) {
      const message = `pod ${formatId(request)} is still being deleted`;
      throw new ProviderError('Transient', { op: 'create', provider: name }, message);
    }
    return pod;
  }

  async function ensureConfigMap(
    request: CreateRequest,
    podUid: string,
    signal: AbortSignal,
  ): Promise<void> {
    const body = buildConfigMap(request, block, podUid);
    try {
      await configMaps.create(request.namespace, body, signal);
      return;
    } catch (error) {
      if (!isKubeError(error, 'AlreadyExists')) throw error;
    }
    const { metadata } = await configMaps.get(request, signal);
    if (metadata.ownerReferences?.some((owner) => owner.uid === podUid)) return;
    if (metadata.labels?.[UID_LABEL] !== request.uid) {
      const id = formatId(request);
      throw permanent('create', `ConfigMap ${id} exists and belongs to somebody else`);
    }
    // Left by the pod before this one, whose garbage collection would take it away under us.
    await configMaps.delete(request, { preconditions: { uid: metadata.uid } }, signal);
    await configMaps.create(request.namespace, body, signal);
  }

  return {
    name,
    type,
    create: (request, signal) =>
      classified('create', async () => {
        const pod = await ensurePod(request, signal);
        await ensureConfigMap(request, pod.metadata.uid, signal);
        return formatId(pod.metadata);
      }),
    get: (id, signal) =>
      classified('get', async () => instanceFromPod(await pods.get(refOf('get', id), signal))),
    delete: (id, signal) =>
      classified('delete', async () => {
        const ref = refOf('delete', id);
        try {
          const pod = await pods.get(ref, signal);
          if (!isMarked(pod)) throw permanent('delete', `pod ${id} is not one of ours`);
          if (pod.metadata.deletionTimestamp) return;
          const preconditions = { uid: pod.metadata.uid };
          await pods.delete(ref, { preconditions }, signal);
        } catch (error) {
          if (!isKubeError(error, 'NotFound')) throw error;
        }
      }),
    disown: (id, signal) =>
      classified('disown', async () => {
        const labels = { [MANAGED_LABEL]: null, [UID_LABEL]: null, [INSTALLATION_LABEL]: null };
        const patch = {
          type: 'application/merge-patch+json',
          body: { metadata: { labels } },
        } as const;
        try {
          await pods.patch(refOf('disown', id), patch, signal);
        } catch (error) {
          if (!isKubeError(error, 'NotFound')) throw error;
        }
      }),
    listByTag: (signal) =>
      classified('list', async () => {
        const scope = deps.namespace === undefined ? {} : { namespace: deps.namespace };
        const labelSelector = `${MANAGED_LABEL}=true`;
        const marked = await pods.list({ ...scope, labelSelector }, signal);
        return marked.map(instanceFromPod);
      }),
    check: (signal) => checkApiServer(deps.client, deps.namespace, signal),
  };
}
