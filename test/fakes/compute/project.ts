/** One project: its instances, firewall rules, operations and quotas, as time goes by. */
import { createHash } from 'node:crypto';
import { ApiFailure, alreadyExists, invalid, notFound, required } from './api-failure.ts';
import {
  type Operation,
  type OperationFailure,
  Operations,
  operationResource,
} from './operations.ts';
import {
  type Catalogue,
  type Json,
  known,
  lastOf,
  listOf,
  NAME,
  objectOf,
  validateInstance,
  validateLabels,
} from './validate.ts';

/** The API remembers request ids for about an hour. */
const REQUEST_MEMORY_MS = 3_600_000;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export interface Instance {
  readonly zone: string;
  readonly name: string;
  /** As it was sent. */
  readonly body: Json;
  labels: Record<string, string>;
  readonly createdAtMs: number;
  readonly runsAtMs: number;
  readonly internalIP: string;
  readonly externalIP: string;
  /** Overrides what time says. */
  forced?: string;
  statusMessage?: string;
  /** It does not go as long as this is set. */
  held?: boolean;
}

/** What an instance is beyond its resource: a real server behind its address, for one. */
export interface Hypervisor {
  started(instance: Instance): void;
  stopped(instance: Instance): void;
  /** The external address of the next instance, of whatever project; each is given once. */
  nextAddress?(): string;
}

export interface ProjectOptions extends Catalogue {
  readonly nowMs: () => number;
  /** How long operations take, and an instance until it runs. */
  readonly operationMs: number;
  readonly bootMs: number;
  readonly hypervisor?: Hypervisor;
}

export class FakeProject {
  readonly instances = new Map<string, Instance>();
  readonly firewalls = new Map<string, Json>();
  readonly operations = new Operations();
  /** Zones that cannot be read at present. */
  readonly unreachable = new Set<string>();
  /** By region and metric; what is not here has no limit. */
  readonly quotas = new Map<string, number>();
  /** The next inserts are accepted and fail with this. */
  readonly insertFailures: OperationFailure[] = [];
  /** Inserted instances can be seen only after this time. */
  hiddenMs = 0;
  /** A page of a list holds no more, whatever is asked for. */
  pageSizeMax = 500;
  /** Instances that were ever made. */
  made = 0;
  readonly options: ProjectOptions;
  readonly #requests = new Map<string, Operation>();

  constructor(options: ProjectOptions) {
    this.options = options;
  }

  get base(): string {
    return `https://www.googleapis.com/compute/v1/projects/${this.options.project}`;
  }

  /** Brings everything up to the present. */
  settle(): void {
    this.operations.settle(this.options.nowMs());
  }

  insert(zone: string, body: Json, requestId: string | undefined): Operation {
    this.#zone(zone);
    const repeated = this.#repeated(requestId);
    if (repeated !== undefined) return repeated;
    validateInstance(body, zone, this.options);
    const name = String(body['name']);
    const key = keyOf(zone, name);
    if (this.instances.has(key)) throw alreadyExists(this.pathOf(key));
    this.#checkQuota(zone, body);
    const instance = this.#make(zone, name, body);
    const failure = this.insertFailures.shift();
    const operation = this.#operate(zone, 'insert', key, {
      failure,
      undo: () => this.remove(key),
    });
    this.instances.set(key, instance);
    if (failure === undefined) {
      this.made++;
      this.options.hypervisor?.started(instance);
    }
    if (requestId !== undefined) this.#requests.set(requestId, operation);
    return operation;
  }

  /** As an administrator: no checks, no waiting. */
  put(zone: string, name: string, body: Json): Instance {
    const instance = { ...this.#make(zone, name, body), runsAtMs: this.options.nowMs() };
    this.instances.set(keyOf(zone, name), instance);
    return instance;
  }

  get(zone: string, name: string): Instance {
    this.#zone(zone);
    const key = keyOf(zone, name);
    const instance = this.instances.get(key);
    if (instance === undefined || this.#isHidden(instance)) throw notFound(this.pathOf(key));
    return instance;
  }

  delete(zone: string, name: string): Operation {
    const instance = this.get(zone, name);
    const key = keyOf(zone, name);
    const pending = this.operations.pending('delete', `${this.base}/${key}`);
    if (pending !== undefined) {
      const message = `The resource '${this.pathOf(key)}' is not ready`;
      throw new ApiFailure(400, 'resourceNotReady', message);
    }
    instance.forced = 'STOPPING';
    return this.#operate(zone, 'delete', key, { effect: () => this.remove(key) });
  }

  setLabels(zone: string, name: string, body: Json): Operation {
    const instance = this.get(zone, name);
    const { labels, labelFingerprint } = body;
    if (labelFingerprint === undefined) throw required('labelFingerprint');
    if (labelFingerprint !== fingerprint(instance.labels)) {
      throw new ApiFailure(
        412,
        'conditionNotMet',
        'Labels fingerprint either invalid or resource labels have changed',
      );
    }
    validateLabels(labels, 'labels');
    return this.#operate(zone, 'setLabels', keyOf(zone, name), {
      effect: () => {
        instance.labels = objectOf(labels) as Record<string, string>;
      },
    });
  }

  insertFirewall(body: Json): Operation {
    const name = String(body['name'] ?? '');
    this.#validateFirewall(body);
    if (this.firewalls.has(name)) throw alreadyExists(this.pathOf(`global/firewalls/${name}`));
    this.firewalls.set(name, body);
    return this.#operate(undefined, 'insert', `global/firewalls/${name}`, {});
  }

  patchFirewall(name: string, body: Json): Operation {
    const before = this.firewall(name);
    const after = { ...before, ...body };
    this.#validateFirewall(after);
    if (lastOf(before['network']) !== lastOf(after['network'])) {
      throw invalid('resource.network', after['network'], 'Network cannot be changed.');
    }
    this.firewalls.set(name, after);
    return this.#operate(undefined, 'patch', `global/firewalls/${name}`, {});
  }

  firewall(name: string): Json {
    const rule = this.firewalls.get(name);
    if (rule === undefined) throw notFound(this.pathOf(`global/firewalls/${name}`));
    return rule;
  }

  /** The instance is gone, and its disk with it. */
  remove(key: string): void {
    const instance = this.instances.get(key);
    if (instance === undefined) return;
    if (instance.held) {
      // It is tried again as long as it is held.
      const [, zone = ''] = key.split('/');
      this.#operate(zone, 'delete', key, { effect: () => this.remove(key) });
      return;
    }
    this.instances.delete(key);
    this.options.hypervisor?.stopped(instance);
  }

  /** All that can be seen, in a stable order. */
  visible(zone: string): Instance[] {
    return [...this.instances.values()].filter(
      (instance) => instance.zone === zone && !this.#isHidden(instance),
    );
  }

  statusOf({ forced, createdAtMs, runsAtMs }: Instance): string {
    const nowMs = this.options.nowMs();
    if (forced !== undefined) return forced;
    if (nowMs >= runsAtMs) return 'RUNNING';
    return nowMs >= (createdAtMs + runsAtMs) / 2 ? 'STAGING' : 'PROVISIONING';
  }

  resourceOf(instance: Instance): Json {
    const { zone, name, body, labels, internalIP, externalIP, createdAtMs } = instance;
    const status = this.statusOf(instance);
    const interfaces = listOf(body['networkInterfaces']).map((nic) => ({
      ...nic,
      name: 'nic0',
      networkIP: internalIP,
      accessConfigs: listOf(nic['accessConfigs']).map((access) => ({
        ...access,
        // The address comes with the start, and goes with the stop.
        ...(status === 'RUNNING' ? { natIP: externalIP } : {}),
      })),
    }));
    return {
      ...body,
      kind: 'compute#instance',
      id: String(BigInt(`0x${createHash('sha256').update(name).digest('hex').slice(0, 15)}`)),
      zone: `${this.base}/zones/${zone}`,
      selfLink: `${this.base}/${keyOf(zone, name)}`,
      status,
      ...(instance.statusMessage === undefined ? {} : { statusMessage: instance.statusMessage }),
      // With an offset, as the API writes its times.
      creationTimestamp: new Date(createdAtMs).toISOString().replace('Z', '+00:00'),
      labels,
      labelFingerprint: fingerprint(labels),
      networkInterfaces: interfaces,
    };
  }

  regions(): Json[] {
    const names = [...new Set(this.options.zones.map(regionOf))];
    return names.map((name) => ({
      kind: 'compute#region',
      name,
      quotas: this.#metrics(name).map(([metric, usage]) => ({
        metric,
        usage,
        limit: this.quotas.get(`${name} ${metric}`) ?? 1_000_000,
      })),
    }));
  }

  resourceOfOperation(operation: Operation): Json {
    return operationResource(operation, this.base);
  }

  pathOf(key: string): string {
    return `projects/${this.options.project}/${key}`;
  }

  #make(zone: string, name: string, body: Json): Instance {
    const nowMs = this.options.nowMs();
    const count = this.#count++;
    return {
      zone,
      name,
      body,
      labels: objectOf(body['labels']) as Record<string, string>,
      createdAtMs: nowMs,
      runsAtMs: nowMs + this.options.bootMs,
      internalIP: `10.132.${Math.floor(count / 250)}.${(count % 250) + 2}`,
      externalIP: this.options.hypervisor?.nextAddress?.() ?? `203.0.113.${(count % 250) + 2}`,
    };
  }
  #count = 0;

  #operate(
    zone: string | undefined,
    operationType: string,
    key: string,
    ends: Pick<Operation, 'effect' | 'undo' | 'failure'>,
  ): Operation {
    const insertedAtMs = this.options.nowMs();
    return this.operations.add({
      zone,
      operationType,
      targetLink: `${this.base}/${key}`,
      insertedAtMs,
      doneAtMs: insertedAtMs + this.options.operationMs,
      ...ends,
    });
  }

  #repeated(requestId: string | undefined): Operation | undefined {
    if (requestId === undefined) return undefined;
    if (!UUID.test(requestId)) throw invalid('requestId', requestId, 'Must be a valid UUID.');
    const first = this.#requests.get(requestId);
    if (first === undefined) return undefined;
    return this.options.nowMs() - first.insertedAtMs < REQUEST_MEMORY_MS ? first : undefined;
  }

  #zone(zone: string): void {
    if (!this.options.zones.includes(zone)) throw invalid('zone', zone, 'Unknown zone.');
  }

  #isHidden({ createdAtMs }: Instance): boolean {
    return this.options.nowMs() < createdAtMs + this.hiddenMs;
  }

  #metrics(region: string): [metric: string, usage: number][] {
    const there = [...this.instances.values()].filter(({ zone }) => regionOf(zone) === region);
    const external = there.filter(({ body }) =>
      listOf(body['networkInterfaces']).some((nic) => listOf(nic['accessConfigs']).length > 0),
    );
    return [
      ['INSTANCES', there.length],
      ['CPUS', there.length * 2],
      ['IN_USE_ADDRESSES', external.length],
    ];
  }

  #checkQuota(zone: string, body: Json): void {
    const region = regionOf(zone);
    const external = listOf(body['networkInterfaces']).some(
      (nic) => listOf(nic['accessConfigs']).length > 0,
    );
    const needs: Record<string, number> = { INSTANCES: 1, CPUS: 2 };
    if (external) needs['IN_USE_ADDRESSES'] = 1;
    for (const [metric, usage] of this.#metrics(region)) {
      const limit = this.quotas.get(`${region} ${metric}`);
      if (limit === undefined || usage + (needs[metric] ?? 0) <= limit) continue;
      const message = `Quota '${metric}' exceeded.  Limit: ${limit}.0 in region ${region}.`;
      throw new ApiFailure(403, 'quotaExceeded', message);
    }
  }

  #validateFirewall(body: Json): void {
    known(body, 'firewall', 'resource');
    if (!NAME.test(String(body['name']))) throw invalid('resource.name', body['name'], 'No name.');
    if (!this.options.networks.includes(lastOf(body['network']))) {
      throw notFound(this.pathOf(String(body['network'])));
    }
    if (listOf(body['allowed']).length === 0) throw required('resource.allowed');
  }
}

export const keyOf = (zone: string, name: string) => `zones/${zone}/instances/${name}`;
export const regionOf = (zone: string) => zone.slice(0, zone.lastIndexOf('-'));

function fingerprint(labels: object): string {
  return createHash('sha256').update(JSON.stringify(labels)).digest('base64').slice(0, 12);
}
