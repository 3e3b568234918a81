/**
 * Follows every machine of a cluster and holds, at each instant, what must never be otherwise; and
 * tells what is still missing until all is as the users want it.
 */
import {
  isDeleting,
  metaMap,
  nameOf,
  objectAt,
  stringAt,
  uidOf,
} from '#deploy/local/control-plane/api/object-meta.ts';
import { type JsonObject, objects } from '#deploy/local/control-plane/json.ts';
import type { KubeClient } from '#deploy/local/kube/client.ts';
import { listAndWatch } from '#deploy/local/kube/watch.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { FINALIZER, MANAGED_LABEL, UID_LABEL } from '#shared/crd/names.ts';
import type { ApiCall } from './api-proxy.ts';
import type { Wish } from './fleet.ts';
import { PROXIES } from './proxy-objects.ts';

const PODS = '/api/v1/pods';
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';
const MANAGED = { labelSelector: `${MANAGED_LABEL}=true` };

export interface MachineWatch {
  /** What was not as it must be at some instant; empty when all is well. */
  readonly faults: readonly string[];
  /** Machines so far. */
  readonly made: number;
  /** Machines that ended though nobody had asked for it, each with how. */
  readonly dead: ReadonlyMap<string, string>;
  /** Machines that exist now, terminating ones included. */
  readonly present: number;
  /** Machines that run now and are not on their way out: UIDs of pods, or what else names them. */
  running(): string[];
  /** To be called before a finalizer goes: a machine that is still there would be nobody's. */
  checkRelease(call: ApiCall): Promise<void>;
  /** What stands between the present state and what the users want, one line each. */
  missing(living: ReadonlyMap<string, Wish>): Promise<string[]>;
  close(): Promise<void>;
}

/** Whose machine a pod is. */
const ownerOf = (pod: JsonObject) => metaMap(pod, 'labels')[UID_LABEL] ?? '';

export function watchMachines(kube: KubeClient): MachineWatch {
  const stopping = new AbortController();
  const { signal } = stopping;
  const pods = new Map<string, JsonObject>();
  const seen = new Set<string>();
  const dead = new Map<string, string>();
  const faults: string[] = [];

  function onChange(uid: string, pod: JsonObject | undefined): void {
    if (pod === undefined) {
      pods.delete(uid);
      return;
    }
    pods.set(uid, pod);
    seen.add(uid);
    if (ENDED.has(phaseOf(pod)) && !isDeleting(pod) && !dead.has(uid)) dead.set(uid, howOf(pod));
    const owner = ownerOf(pod);
    const twins = [...pods.values()].filter((one) => ownerOf(one) === owner && !isDeleting(one));
    if (twins.length > 1) {
      faults.push(`proxy ${owner} has ${twins.length} machines: ${twins.map(nameOf).join(', ')}`);
    }
  }

  const watching = listAndWatch(
    { client: kube, clock, signal },
    { path: PODS, query: MANAGED, onChange },
  );
  return {
    faults,
    get made() {
      return seen.size;
    },
    dead,
    get present() {
      return pods.size;
    },
    running: () => [...pods].filter(([, pod]) => isRunning(pod)).map(([uid]) => uid),
    async checkRelease(call) {
      const uid = /"uid":"([^"]+)"/.exec(call.body)?.[1] ?? '';
      const query = { labelSelector: `${UID_LABEL}=${uid}` };
      const left = objects((await kube.request({ path: PODS, query }))['items']);
      for (const pod of left) {
        faults.push(`${call.path} is let go while its machine ${nameOf(pod)} is there`);
      }
    },
    async missing(living) {
      const [proxies, machines, configMaps] = await Promise.all([
        list(kube, PROXIES),
        list(kube, PODS),
        list(kube, CONFIG_MAPS),
      ]);
      return [
        ...unwanted(proxies, living),
        ...[...living.values()].flatMap((wish) => lacking(wish, proxies, machines)),
        ...ownerless(machines, living),
        ...strayConfigMaps(configMaps, machines),
      ];
    },
    async close() {
      stopping.abort();
      await watching;
    },
  };
}

async function list(kube: KubeClient, path: string): Promise<JsonObject[]> {
  const query = path === PROXIES ? {} : MANAGED;
  return objects((await kube.request({ path, query }))['items']);
}

const phaseOf = (object: JsonObject) => stringAt(objectAt(object, 'status'), 'phase');
const ENDED: ReadonlySet<string> = new Set(['Failed', 'Succeeded']);
const HOW_LENGTH_MAX = 300;

/** Exit code and last words. */
function howOf(pod: JsonObject): string {
  const container = objects(objectAt(pod, 'status')['containerStatuses'])[0] ?? {};
  const { exitCode, message } = objectAt(objectAt(container, 'state'), 'terminated');
  return `${nameOf(pod)}: exit code ${exitCode ?? '?'}: ${String(message).slice(-HOW_LENGTH_MAX)}`;
}

const isRunning = (pod: JsonObject) => phaseOf(pod) === 'Running' && !isDeleting(pod);

/** Proxies that are still there though they were deleted. */
export function unwanted(proxies: JsonObject[], living: ReadonlyMap<string, Wish>): string[] {
  const uids = new Set([...living.values()].map(({ uid }) => uid));
  return proxies
    .filter((proxy) => !uids.has(uidOf(proxy)))
    .map((proxy) => `${nameOf(proxy)} was deleted and is still there`);
}

/** Exactly one machine, as the present spec has it, recorded and usable. */
function lacking(wish: Wish, proxies: JsonObject[], machines: JsonObject[]): string[] {
  const { name, uid, port } = wish;
  const proxy = proxies.find((one) => uidOf(one) === uid);
  if (proxy === undefined) return [`${name} is gone though nobody deleted it`];
  const own = machines.filter((pod) => ownerOf(pod) === uid);
  const [pod] = own;
  if (pod === undefined || own.length > 1) return [`${name} has ${own.length} machines`];
  if (!isRunning(pod)) return [`${name}: its machine is ${phaseOf(pod)}`];
  const status = objectAt(proxy, 'status');
  const listens = objects(objects(objectAt(pod, 'spec')['containers'])[0]?.['ports'])[0];
  const checks: readonly [boolean, string][] = [
    [listens?.['containerPort'] === port, `its machine does not listen on ${port}`],
    [stringAt(status, 'providerID') === `default/${nameOf(pod)}`, 'its machine is not recorded'],
    [stringAt(status, 'phase') === 'Ready', `its phase is ${stringAt(status, 'phase')}`],
    [JSON.stringify(proxy['metadata']).includes(FINALIZER), 'it has no finalizer'],
  ];
  return checks.filter(([holds]) => !holds).map(([, what]) => `${name}: ${what}`);
}

function ownerless(machines: JsonObject[], living: ReadonlyMap<string, Wish>): string[] {
  const uids = new Set([...living.values()].map(({ uid }) => uid));
  return machines
    .filter((pod) => !uids.has(ownerOf(pod)))
    .map((pod) => `machine ${nameOf(pod)} belongs to no living proxy`);
}

function strayConfigMaps(configMaps: JsonObject[], machines: JsonObject[]): string[] {
  const names = new Set(machines.map(nameOf));
  return configMaps
    .filter((one) => !names.has(nameOf(one)))
    .map((one) => `ConfigMap ${nameOf(one)} belongs to no machine`);
}
