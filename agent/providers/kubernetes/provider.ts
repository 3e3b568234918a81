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
import { MANAGED_LABEL } from '#shared/crd/names.ts';
import { classified, type ProviderLog } from '../classified.ts';
import type { KubernetesProviderConfig } from '../config.ts';
import { ProviderError, type ProviderOp } from '../errors.ts';
import { isMadeFor, isMarked, MARK_LABELS } from '../mark.ts';
import type { Checker, CreateRequest, Instance, Provider } from '../provider.ts';
import { checkApiServer } from './check.ts';
import { classify, saysNotFound } from './classify.ts';
import { formatId, type PodRef, parseId } from './id.ts';
import { buildConfigMap, buildPod } from './pod.ts';
import { instanceFromPod, type Pod, parsePod } from './state.ts';

export interface KubernetesProviderDeps {
  readonly client: KubeClient;
  readonly log?: ProviderLog;
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
  const { name, type, creationsPerMinute, kubernetes: block } = config;
  const pods = createResource(deps.client, PODS, parsePod);
  const configMaps = createResource(deps.client, CONFIG_MAPS, (object) =>
    configMapSchema.parse(object),
  );

  const call = classified(name, classify, deps.log);

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
    if (!isMadeFor(request, pod.metadata.labels)) {
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
    const found = await configMaps.get(request, signal);
    const { metadata } = found;
    if (metadata.ownerReferences?.some((owner) => owner.uid === podUid)) return;
    if (!isMadeFor(request, metadata.labels)) {
      const id = formatId(request);
      throw permanent('create', `ConfigMap ${id} exists and belongs to somebody else`);
    }
    // Left by the pod before this one, whose garbage collection would take it away under us.
    await unlessGone(configMaps.delete(request, { preconditions: { uid: metadata.uid } }, signal));
    await configMaps.create(request.namespace, body, signal);
  }

  async function deletePod(id: string, signal: AbortSignal): Promise<void> {
    const ref = refOf('delete', id);
    const pod = await unlessGone(pods.get(ref, signal));
    if (pod === undefined) return;
    if (!isMarked(pod.metadata.labels)) throw permanent('delete', `pod ${id} is not one of ours`);
    if (pod.metadata.deletionTimestamp) return;
    const preconditions = { uid: pod.metadata.uid };
    await unlessGone(pods.delete(ref, { preconditions }, signal));
  }

  async function listMarked(signal: AbortSignal): Promise<Instance[]> {
    const scope = deps.namespace === undefined ? {} : { namespace: deps.namespace };
    const labelSelector = `${MANAGED_LABEL}=true`;
    return (await pods.list({ ...scope, labelSelector }, signal)).map(instanceFromPod);
  }

  return {
    name,
    type,
    creationsPerMinute,
    create: (request, signal) =>
      call('create', formatId(request), async () => {
        const pod = await ensurePod(request, signal);
        await ensureConfigMap(request, pod.metadata.uid, signal);
        return formatId(pod.metadata);
      }),
    get: (id, signal) =>
      call('get', id, async () => instanceFromPod(await pods.get(refOf('get', id), signal))),
    delete: (id, signal) => call('delete', id, () => deletePod(id, signal)),
    disown: (id, signal) =>
      call('disown', id, async () => {
        await unlessGone(pods.patch(refOf('disown', id), WITHOUT_MARK, signal));
      }),
    listByTag: (signal) => call('list', '', () => listMarked(signal)),
    check: (signal) => checkApiServer(deps.client, deps.namespace, signal),
  };
}

/** Takes the whole mark off; what is not there is taken off, too. */
const WITHOUT_MARK = {
  type: 'application/merge-patch+json',
  body: {
    metadata: {
      labels: Object.fromEntries(MARK_LABELS.map((label) => [label, null])),
    },
  },
} as const;

/** What `call` gives; undefined when the API server says that the object is not there. */
async function unlessGone<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (saysNotFound(error)) return undefined;
    throw error;
  }
}
