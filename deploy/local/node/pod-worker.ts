/**
 * One pod on this node, from its address to its end. The pod object is only ever read as it is
 * now: `update` and `gone` say that something changed, never what.
 */
import { once } from 'node:events';
import { chownSync, mkdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '#shared/clock.ts';
import { reasonOf } from '../fault.ts';
import { type KubeClient, KubeError } from '../kube/client.ts';
import type { ChildDeps } from '../process/child.ts';
import type { AddressPool, PodAddress } from './addresses.ts';
import { containerEnv } from './container-env.ts';
import { initialReport, runContainer } from './container-runner.ts';
import type { EventRecorder } from './events.ts';
import type { ContainerPlace, ImageCatalog } from './image.ts';
import { type Container, hasEnded, type Pod, podPath, unsupported } from './pod.ts';
import { containerLogFile } from './pod-logs.ts';
import { type ContainerReport, kubeTime, type PodCondition, podStatus } from './pod-status.ts';
import { createStatusWriter, type StatusWriter } from './status-writer.ts';
import {
  leaves,
  MountError,
  makeVolumes,
  type ObjectSource,
  type Owner,
  objectSource,
} from './volumes.ts';

const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 10_000;
/** A ConfigMap often comes a moment after its pod; from this wait on it is worth an event. */
const MOUNT_EVENT_MS = 800;

export interface PodWorkerDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly child: ChildDeps;
  readonly images: ImageCatalog;
  readonly addresses: AddressPool;
  readonly events: EventRecorder;
  readonly hostIP: string;
  /** Folder for the files of pods; logs go elsewhere, to outlive them. */
  readonly runtimeDir: string;
  readonly logDir: string;
  /** Aborts when the node stops: requests to the API server end with it. */
  readonly signal: AbortSignal;
  /** Longest grace of a container when the whole node stops. */
  readonly stopGraceMs: number;
  /** Whether processes can be started as another user. */
  readonly isRoot: boolean;
}

/** Why a pod's processes end. */
type Ending = 'deleted' | 'gone' | 'node-stop';

export class PodWorker {
  readonly #deps: PodWorkerDeps;
  readonly #folder: string;
  readonly #writer: StatusWriter;
  readonly #ending = new AbortController();
  readonly #reports: Map<string, ContainerReport>;
  readonly #startTime: string;
  #pod: Pod;
  #conditions: PodCondition[] = [];
  #address: PodAddress | undefined;
  /** Resolves when nothing of the pod is left on this machine. */
  readonly done: Promise<void>;

  constructor(deps: PodWorkerDeps, pod: Pod) {
    this.#deps = deps;
    this.#pod = pod;
    this.#folder = join(deps.runtimeDir, pod.metadata.uid);
    this.#startTime = pod.status.startTime ?? kubeTime(deps.clock.now());
    this.#writer = createStatusWriter(deps, { path: podPath(pod), uid: pod.metadata.uid });
    this.#reports = new Map(
      pod.spec.containers.map((container) => {
        const before = pod.status.containerStatuses.find(({ name }) => name === container.name);
        return [container.name, initialReport(container, before?.restartCount ?? 0)];
      }),
    );
    this.done = this.#run().catch((error: unknown) => {
      deps.events.emit(this.#pod, 'Warning', 'FailedSync', reasonOf(error));
    });
    this.update(pod);
  }

  get podName(): { readonly namespace: string; readonly name: string } {
    return this.#pod.metadata;
  }

  /** Takes the present state of the object. */
  update(pod: Pod): void {
    this.#pod = pod;
    if (pod.metadata.deletionTimestamp !== undefined) this.#end('deleted');
  }

  /** The object does not exist any more. */
  gone(): void {
    this.#end('gone');
  }

  /** The node stops: processes end, the object stays as it is. */
  stop(): Promise<void> {
    this.#end('node-stop');
    return this.done;
  }

  #end(why: Ending): void {
    if (!this.#ending.signal.aborted) this.#ending.abort(why);
  }

  get #why(): Ending | undefined {
    return this.#ending.signal.aborted ? this.#ending.signal.reason : undefined;
  }

  async #run(): Promise<void> {
    // One turn later, so that `done` is set and the first `update` was taken.
    await Promise.resolve();
    try {
      if (!hasEnded(this.#pod) && this.#why === undefined) await this.#live();
      if (this.#why === undefined) await once(this.#ending.signal, 'abort');
      if (this.#why !== 'deleted') return;
      await this.#writer.flush();
      await this.#removeObject();
    } finally {
      this.#address?.release();
      rmSync(this.#folder, { recursive: true, force: true });
    }
  }

  /** From the address to the end of the last container. */
  async #live(): Promise<void> {
    const refusal = unsupported(this.#pod);
    if (refusal !== undefined) {
      this.#deps.events.emit(this.#pod, 'Warning', 'Unsupported', refusal);
      this.#writer.write({ phase: 'Failed', reason: 'Unsupported', message: refusal });
      return;
    }
    const ports = this.#pod.spec.containers.flatMap(({ ports }) =>
      ports.map(({ containerPort }) => containerPort),
    );
    this.#address = await this.#deps.addresses.acquire(ports, this.#pod.status.podIP || undefined);
    this.#publish();
    const places = await this.#prepare(this.#address.ip);
    await Promise.all(places.map((place) => this.#runContainer(place)));
    await this.#writer.flush();
  }

  /** Volumes and environments; a missing ConfigMap or Secret is waited for. */
  async #prepare(ip: string): Promise<ContainerPlace[]> {
    const { client, clock, signal } = this.#deps;
    const ending = AbortSignal.any([this.#ending.signal, signal]);
    const source = objectSource(client, this.#pod.metadata.namespace, ending);
    let retryMs = RETRY_MS_MIN;
    while (!ending.aborted) {
      try {
        return await this.#places(ip, source);
      } catch (error) {
        if (ending.aborted) break;
        if (retryMs >= MOUNT_EVENT_MS) {
          this.#deps.events.emit(this.#pod, 'Warning', 'FailedMount', reasonOf(error));
        }
        await clock.sleep(retryMs, ending).catch(() => {});
        retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
      }
    }
    return [];
  }

  async #places(ip: string, source: ObjectSource): Promise<ContainerPlace[]> {
    const pod = this.#pod;
    mkdirSync(this.#folder, { recursive: true, mode: 0o711 });
    const places: ContainerPlace[] = [];
    const [first] = pod.spec.containers;
    const reader = first === undefined ? undefined : this.#owner(first);
    const volumes = await makeVolumes(pod, join(this.#folder, 'volumes'), source, reader);
    for (const container of pod.spec.containers) {
      const owner = this.#owner(container);
      const folder = join(this.#folder, 'containers', container.name);
      // The way to it is made apart: it must be passable for the user that owns the end of it.
      mkdirSync(dirname(folder), { recursive: true, mode: 0o711 });
      mkdirSync(folder, { recursive: true, mode: 0o750 });
      if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
      const mounts = container.volumeMounts
        .flatMap(({ name, mountPath, subPath }) => {
          const volume = volumes.get(name);
          if (volume === undefined) return [];
          if (leaves(subPath)) throw new MountError(`subPath "${subPath}" leaves the volume`);
          return [{ containerPath: mountPath, hostPath: join(volume, subPath) }];
        })
        .sort((a, b) => b.containerPath.length - a.containerPath.length);
      const env = await containerEnv(pod, container, ip, source);
      const place = { pod, container, ip, folder, mounts, env };
      places.push(owner === undefined ? place : { ...place, owner });
    }
    return places;
  }

  /** The user to run as: what the pod says, else the image's; only root can choose. */
  #owner(container: Container): Owner | undefined {
    if (!this.#deps.isRoot) return undefined;
    const image = this.#deps.images(container.image)?.defaultOwner();
    const podWide = this.#pod.spec.securityContext;
    const uid = container.securityContext.runAsUser ?? podWide.runAsUser ?? image?.uid;
    if (uid === undefined) return undefined;
    const gid = container.securityContext.runAsGroup ?? podWide.runAsGroup ?? image?.gid ?? uid;
    return { uid, gid };
  }

  #runContainer(place: ContainerPlace): Promise<void> {
    const container = place.container.name;
    return runContainer({
      clock: this.#deps.clock,
      child: this.#deps.child,
      image: this.#deps.images(place.container.image),
      place,
      logPath: containerLogFile(this.#deps.logDir, this.#pod.metadata, container),
      restartCount: this.#reports.get(container)?.restartCount ?? 0,
      signal: this.#ending.signal,
      nodeSignal: this.#deps.signal,
      graceMs: () => this.#graceMs(),
      onReport: (report) => {
        this.#reports.set(container, report);
        this.#publish();
      },
      event: (type, reason, message) => this.#deps.events.emit(this.#pod, type, reason, message),
    });
  }

  #graceMs(): number {
    const { deletionGracePeriodSeconds } = this.#pod.metadata;
    const seconds = deletionGracePeriodSeconds ?? this.#pod.spec.terminationGracePeriodSeconds;
    const graceMs = seconds * 1000;
    const nodeStops = this.#why === 'node-stop' || this.#deps.signal.aborted;
    return nodeStops ? Math.min(graceMs, this.#deps.stopGraceMs) : graceMs;
  }

  #publish(): void {
    // A stopping node leaves objects as they are: the next one takes the pods up again.
    if (this.#why === 'node-stop' || this.#why === 'gone') return;
    const facts = {
      pod: this.#pod,
      hostIP: this.#deps.hostIP,
      ...(this.#address === undefined ? {} : { ip: this.#address.ip }),
      startTime: this.#startTime,
      containers: [...this.#reports.values()],
      conditions: this.#conditions,
      nowMs: this.#deps.clock.now(),
    };
    const status = podStatus(facts);
    this.#conditions = status.conditions;
    this.#writer.write(status);
  }

  /** The kubelet's last word on a deleted pod: with a grace of zero the object goes. */
  async #removeObject(): Promise<void> {
    const { client, clock, signal } = this.#deps;
    let retryMs = RETRY_MS_MIN;
    while (!signal.aborted) {
      try {
        await client.request({
          method: 'DELETE',
          path: podPath(this.#pod),
          body: { gracePeriodSeconds: 0, preconditions: { uid: this.#pod.metadata.uid } },
          signal,
        });
        return;
      } catch (error) {
        if (error instanceof KubeError && [404, 409].includes(error.status)) return;
        await clock.sleep(retryMs, signal).catch(() => {});
        retryMs = Math.min(retryMs * 2, RETRY_MS_MAX);
      }
    }
  }
}
