/**
 * One reconcile's work on one Proxy: the freshest object and the status as staged so far. Steps
 * stage; only `reconcile` writes, once, and only when something differs.
 */
import type { Verdict } from '#agent/health/verdict-reader.ts';
import type { ProxyEvent } from '#agent/kube/events.ts';
import type { Clock } from '#shared/clock.ts';
import { API_VERSION } from '#shared/crd/names.ts';
import { objectKey } from '#shared/crd/object-meta.ts';
import type { Proxy, ProxyStatus } from '#shared/crd/proxy.ts';
import {
  type ConditionType,
  findCondition,
  INSTANCE_DOWN_REASONS,
} from '#shared/crd/proxy-status.ts';
import type { ControllerDeps } from './deps.ts';
import { type ProvisionedReason, withCondition, withoutCondition } from './status.ts';

/** What a drain precedes. */
export type DrainReason = 'Replacement' | 'Deletion';

type Told = Pick<ProxyEvent, 'type' | 'reason' | 'action' | 'note'>;

export class Draft {
  readonly key: string;
  /** The object is gone with this reconcile: there is no status left to write. */
  released = false;
  #proxy: Proxy;
  #status: ProxyStatus;
  readonly #events: ControllerDeps['events'];
  readonly #clock: Clock;

  constructor(proxy: Proxy, deps: Pick<ControllerDeps, 'events' | 'clock'>) {
    this.key = objectKey(proxy.metadata);
    this.#proxy = proxy;
    this.#status = proxy.status;
    this.#events = deps.events;
    this.#clock = deps.clock;
  }

  get proxy(): Proxy {
    return this.#proxy;
  }

  get status(): ProxyStatus {
    return this.#status;
  }

  nowMs(): number {
    return this.#clock.now();
  }

  /** Takes in what a write of metadata answered; the staged status stays. */
  replaceProxy(fresh: Proxy): void {
    this.#proxy = fresh;
  }

  /** Answers whether status or reason changed, which is when an event is due. */
  setProvisioned(status: 'True' | 'False', reason: ProvisionedReason, message: string): boolean {
    return this.#set('Provisioned', status, reason, message);
  }

  setHealthy(status: 'True' | 'False' | 'Unknown', reason: string, message: string): boolean {
    return this.#set('Healthy', status, reason, message);
  }

  /** Answers whether status or reason changed. */
  setDraining(reason: DrainReason, message: string): boolean {
    return this.#set('Draining', 'True', reason, message);
  }

  clearDraining(): void {
    this.#status = withoutCondition(this.#status, 'Draining');
  }

  /** When the drain began that goes on; undefined: none does. */
  drainingSinceMs(): number | undefined {
    const draining = findCondition(this.#status, 'Draining');
    return draining?.status === 'True' ? Date.parse(draining.lastTransitionTime) : undefined;
  }

  #set(
    type: ConditionType,
    status: 'True' | 'False' | 'Unknown',
    reason: string,
    message: string,
  ): boolean {
    const before = findCondition(this.#status, type);
    this.#status = withCondition(
      this.#status,
      { type, status, reason, message },
      { generation: this.#proxy.metadata.generation, nowMs: this.nowMs() },
    );
    return before?.status !== status || before.reason !== reason;
  }

  /** A machine is to be destroyed for its successor: begun and not finished. */
  isReplacing(): boolean {
    const reason = findCondition(this.#status, 'Provisioned')?.reason;
    return this.#status.providerID !== undefined && reason === 'Replacing';
  }

  /** The machine runs, as far as is known. */
  isProvisioned(): boolean {
    return findCondition(this.#status, 'Provisioned')?.status === 'True';
  }

  /** When Provisioned took its present status; now, when it has none. */
  provisionedSinceMs(): number {
    const since = findCondition(this.#status, 'Provisioned')?.lastTransitionTime;
    return since === undefined ? this.nowMs() : Date.parse(since);
  }

  /** The provider's name for the machine, as soon as there may be one; undefined clears it. */
  setProviderID(providerID: string | undefined): void {
    const { providerID: _, ...rest } = this.#status;
    this.#status = providerID === undefined ? rest : { ...rest, providerID };
  }

  /**
   * Where the proxy is reached, and since when the machine behind it exists (0: not known). What
   * was known of another address, or of another machine, is forgotten with it.
   */
  setAddress(ip: string, port: number, createdAtMs = 0): void {
    const made = createdAtMs === 0 ? undefined : new Date(createdAtMs).toISOString();
    const before = this.#status;
    const isSame = made === undefined || [undefined, made].includes(before.instanceCreationTime);
    if (before.ip !== ip || before.port !== port || !isSame) {
      this.clearAddress('NotProbed', 'the address is new and has not been probed yet');
      this.#status = { ...this.#status, ip, port };
    }
    if (made !== undefined) this.#status = { ...this.#status, instanceCreationTime: made };
  }

  /** Takes the proxy out of the inventory: without an address nobody is sent to it. */
  clearAddress(reason: string, message: string): void {
    const { ip: _ip, port: _port, instanceCreationTime: _made, ...stays } = this.#status;
    const { egressIP: _egress, latencyMillis: _ms, ...rest } = stays;
    this.#status = rest;
    this.setHealthy('Unknown', reason, message);
  }

  /**
   * Represents what the health engine knows. While it does not track the proxy (yet), an earlier
   * leader's word stands; when it tracks it without a verdict, nobody knows.
   */
  applyHealth(verdict: Verdict | undefined): void {
    const before = findCondition(this.#status, 'Healthy');
    if (verdict === undefined) {
      if (before === undefined || INSTANCE_DOWN_REASONS.has(before.reason)) this.#unprobed();
      return;
    }
    if (verdict.healthy === null) {
      this.#unprobed();
      return;
    }
    this.setHealthy(verdict.healthy ? 'True' : 'False', verdict.reason, verdict.message);
    const { latencyMillis, egressIP } = verdict;
    this.#status = {
      ...this.#status,
      lastHealthCheckTime: new Date(verdict.probedAtMs).toISOString(),
      ...(latencyMillis === undefined ? {} : { latencyMillis }),
      ...(egressIP === undefined ? {} : { egressIP }),
    };
  }

  #unprobed(): void {
    this.setHealthy('Unknown', 'NotProbed', 'waiting for the verdict of the first probes');
  }

  /** Records a Kubernetes Event on the Proxy. */
  tell(event: Told): void {
    const { namespace, name, uid } = this.#proxy.metadata;
    const regarding = { apiVersion: API_VERSION, kind: 'Proxy', namespace, name, uid };
    this.#events.record({ regarding, ...event });
  }
}
