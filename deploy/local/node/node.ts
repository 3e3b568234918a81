/**
 * The local node: takes the pods of a control plane and runs them as processes of this machine.
 * It is scheduler and kubelet in one, for a cluster that has no other node.
 */
import { lstatSync, mkdirSync, rmSync } from 'node:fs';
import type { Clock } from '#shared/clock.ts';
import type { JsonObject } from '../control-plane/json.ts';
import { reasonOf } from '../fault.ts';
import { type KubeClient, KubeError } from '../kube/client.ts';
import { listAndWatch } from '../kube/watch.ts';
import type { ChildDeps } from '../process/child.ts';
import { createAddressPool } from './addresses.ts';
import { createEventRecorder } from './events.ts';
import type { ImageCatalog } from './image.ts';
import { type Pod, parsePod, podPath } from './pod.ts';
import { pruneLogs } from './pod-logs.ts';
import { PodWorker, type PodWorkerDeps } from './pod-worker.ts';

const NODE_NAME = 'local';
const HOST_IP = '127.0.0.1';
const STOP_GRACE_MS = 2_000;
const BIND_RETRY_MS = 1_000;
/** Pods that are replaced for weeks leave a log each: so many ends between two clean-ups. */
const PRUNE_EVERY = 50;

export interface LocalNodeDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly child: ChildDeps;
  readonly images: ImageCatalog;
}

export interface LocalNodeOptions {
  /**
   * Folder for the files of pods, made anew. It must be reachable for other users, which a state
   * directory below somebody's home need not be.
   */
  readonly runtimeDir: string;
  readonly logDir: string;
  /** Told each time that the API server cannot be reached or refuses. */
  onError(message: string): void;
}

export interface LocalNode {
  /** Ends every process; the pods stay in the API, to be taken up by the next node. */
  stop(): Promise<void>;
}

/** Starts the node; pods that an earlier one ran are started again, at their old addresses. */
export function startLocalNode(deps: LocalNodeDeps, options: LocalNodeOptions): LocalNode {
  const { client, clock } = deps;
  makeRuntimeDir(options.runtimeDir);
  mkdirSync(options.logDir, { recursive: true });
  pruneLogs(options.logDir);
  const stopping = new AbortController();
  const { signal } = stopping;
  const events = createEventRecorder(
    { client, clock, signal },
    { component: 'kubelet', host: NODE_NAME },
  );
  const worker: PodWorkerDeps = {
    ...deps,
    addresses: createAddressPool(),
    events,
    hostIP: HOST_IP,
    runtimeDir: options.runtimeDir,
    logDir: options.logDir,
    signal,
    stopGraceMs: STOP_GRACE_MS,
    isRoot: process.getuid?.() === 0,
  };
  const workers = new Map<string, PodWorker>();
  const binding = new Set<string>();
  let ends = 0;

  function onChange(uid: string, object: JsonObject | undefined): void {
    const pod = object === undefined ? undefined : parsePod(object);
    if (pod === undefined) workers.get(uid)?.gone();
    else if (pod.spec.nodeName === '') void bind(uid, pod);
    else if (pod.spec.nodeName === NODE_NAME) take(uid, pod);
  }

  function take(uid: string, pod: Pod): void {
    if (signal.aborted) return;
    const known = workers.get(uid);
    if (known !== undefined) {
      known.update(pod);
      return;
    }
    const fresh = new PodWorker(worker, pod);
    workers.set(uid, fresh);
    void fresh.done.then(() => {
      workers.delete(uid);
      if (++ends % PRUNE_EVERY === 0) pruneLogs(options.logDir, present());
    });
  }

  const present = () => [...workers.values()].map((one) => one.podName);

  /** A watch event follows and brings the pod back with its node. */
  async function bind(uid: string, pod: Pod): Promise<void> {
    if (binding.has(uid) || pod.metadata.deletionTimestamp !== undefined) return;
    binding.add(uid);
    while (!signal.aborted && !(await tryBind(pod))) {
      await clock.sleep(BIND_RETRY_MS, signal).catch(() => {});
    }
    binding.delete(uid);
  }

  /** Whether there is nothing more to do. */
  async function tryBind(pod: Pod): Promise<boolean> {
    try {
      await bindPod(client, pod, signal);
      const { namespace, name } = pod.metadata;
      const message = `Successfully assigned ${namespace}/${name} to ${NODE_NAME}`;
      events.emit(pod, 'Normal', 'Scheduled', message);
      return true;
    } catch (error) {
      // 409: bound already. 404: gone.
      if (error instanceof KubeError && [404, 409].includes(error.status)) return true;
      if (!signal.aborted) options.onError(`binding a pod: ${reasonOf(error)}`);
      return false;
    }
  }

  const watching = listAndWatch(
    { client, clock, signal },
    {
      path: '/api/v1/pods',
      onChange,
      onError: (error) => options.onError(`watching pods: ${reasonOf(error)}`),
    },
  );
  return {
    async stop() {
      const ending = [...workers.values()].map((one) => one.stop());
      stopping.abort();
      await Promise.all([...ending, watching]);
      rmSync(options.runtimeDir, { recursive: true, force: true });
    },
  };
}

function bindPod(client: KubeClient, pod: Pod, signal: AbortSignal): Promise<JsonObject> {
  const { name, namespace, uid } = pod.metadata;
  return client.request({
    method: 'POST',
    path: `${podPath(pod)}/binding`,
    body: {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, namespace, uid },
      target: { apiVersion: 'v1', kind: 'Node', name: NODE_NAME },
    },
    signal,
  });
}

/** Ours and empty: what lies there is from a node that was killed. */
function makeRuntimeDir(path: string): void {
  const before = lstatSync(path, { throwIfNoEntry: false });
  if (before !== undefined && (!before.isDirectory() || before.uid !== process.getuid?.())) {
    throw new Error(`${path} is not a folder of ours`);
  }
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { mode: 0o711 });
}
