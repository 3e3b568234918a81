/** One Proxy, a cluster that holds it, and a controller around them, for tests in stepped time. */
import { expect } from 'vitest';
import { type ControllerOptions, createReconcile } from '#agent/controller/reconcile.ts';
import type { Verdict } from '#agent/health/verdict-reader.ts';
import { KubeError } from '#agent/kube/errors.ts';
import type { ProxyEvent } from '#agent/kube/events.ts';
import type { Mark, Provider } from '#agent/providers/provider.ts';
import { FINALIZER } from '#shared/crd/names.ts';
import { type Proxy, type ProxyStatus, proxySchema } from '#shared/crd/proxy.ts';
import { type ConditionType, findCondition } from '#shared/crd/proxy-status.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { MemoryProvider } from '#test/fakes/memory-provider.ts';

export const KEY = 'crawl/one';

export function proxyWith(spec: object, metadata: object = {}, status: object = {}): Proxy {
  return proxySchema.parse({
    metadata: {
      name: 'one',
      namespace: 'crawl',
      uid: 'uid-1',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...metadata,
    },
    spec,
    status,
  });
}

export const managed = (spec: object = {}, metadata: object = {}, status: object = {}) =>
  proxyWith({ provider: 'memory', ...spec }, metadata, status);

/** What a crash of the agent looks like to the code that runs into it. */
export class Crash extends Error {}

type Around = <T>(what: string, call: () => Promise<T>) => Promise<T>;

export class World {
  readonly clock = new FakeClock();
  readonly events: ProxyEvent[] = [];
  readonly writes: string[] = [];
  readonly verdicts = new Map<string, Verdict>();
  readonly secrets = new Map<string, { data: Record<string, string> }>();
  readonly provider: MemoryProvider;
  /** What the edge says is left; undefined: it has not confirmed the cordon. */
  leases: number | undefined = 0;
  proxy: Proxy | undefined;
  providers: Record<string, Provider>;
  reconcile: ReturnType<typeof createReconcile>;
  readonly #options: ControllerOptions;
  around: Around = (_what, call) => call();

  constructor(proxy: Proxy, options: ControllerOptions = {}) {
    this.#options = options;
    this.proxy = proxy;
    this.provider = new MemoryProvider({
      nowMs: () => this.clock.now(),
      around: (op, call) => this.around(op, call),
    });
    this.providers = { memory: this.provider };
    this.reconcile = this.restart();
  }

  /** A new process: nothing but the cluster and the machines is left of the old one. */
  restart(): ReturnType<typeof createReconcile> {
    this.reconcile = createReconcile(
      {
        proxies: { get: (key) => (key === KEY ? this.proxy : undefined) },
        writer: this.#writer(),
        providers: { get: (name) => this.providers[name] },
        verdicts: { verdict: (key) => this.verdicts.get(key) },
        secrets: { get: async (namespace, name) => this.secrets.get(`${namespace}/${name}`) },
        cloudInitSecrets: { get: (key) => this.secrets.get(key) },
        events: { record: (event) => void this.events.push(event) },
        leases: { remaining: () => this.leases },
        installation: 'here',
        clock: this.clock,
      },
      this.#options,
    );
    return this.reconcile;
  }

  /** One reconcile that dies before its status is written: what it made is recorded nowhere. */
  async crashAtStatus(): Promise<void> {
    this.around = (what, call) => {
      if (what === 'patchStatus') throw new Error('crash');
      return call();
    };
    await expect(this.pass()).rejects.toThrow('crash');
    this.around = (_what, call) => call();
  }

  /** One reconcile; answers what it asked for. */
  async pass(signal: AbortSignal = new AbortController().signal) {
    return this.reconcile(KEY, signal);
  }

  /** Passes, each after the time that the one before it asked for. */
  async passes(count: number): Promise<void> {
    for (let pass = 0; pass < count; pass++) {
      const { requeueAfterMs } = await this.pass();
      await this.clock.advance(requeueAfterMs ?? 0);
    }
  }

  /** Until the machine runs and nothing is due soon. */
  async settle(passesMax = 40): Promise<void> {
    for (let pass = 0; pass < passesMax; pass++) {
      const { requeueAfterMs } = await this.pass();
      if (requeueAfterMs === undefined || requeueAfterMs >= 30_000) return;
      await this.clock.advance(requeueAfterMs);
    }
    throw new Error(`not settled: ${JSON.stringify(this.proxy?.status)}`);
  }

  get status(): ProxyStatus {
    if (this.proxy === undefined) throw new Error('the object is gone');
    return this.proxy.status;
  }

  condition(type: ConditionType) {
    const condition = findCondition(this.status, type);
    return condition && `${condition.status}/${condition.reason}`;
  }

  message(type: ConditionType): string {
    return findCondition(this.status, type)?.message ?? '';
  }

  /** Gives the machine another mark, as one has that was made by hand under our name. */
  remark(mark: Partial<Mark>): void {
    const machine = this.provider.only;
    this.provider.machines.set(machine.id, {
      ...machine,
      request: { ...machine.request, ...mark },
    });
  }

  get eventReasons(): string[] {
    return this.events.map((event) => event.reason);
  }

  /** What a user does: a new spec is a new generation. */
  edit(spec: object): void {
    if (this.proxy === undefined) throw new Error('the object is gone');
    const generation = this.proxy.metadata.generation + 1;
    this.#store({ ...this.proxy, spec: { ...this.proxy.spec, ...spec } }, { generation });
  }

  annotate(annotations: Record<string, string>): void {
    if (this.proxy !== undefined) this.#store(this.proxy, { annotations });
  }

  /** `kubectl delete`. */
  delete(): void {
    if (this.proxy === undefined) return;
    const deletionTimestamp = new Date(this.clock.now()).toISOString();
    this.#store(this.proxy, { deletionTimestamp });
    this.#collect();
  }

  healthy(): void {
    const probedAtMs = this.clock.now();
    const verdict = { healthy: true, reason: 'Healthy', message: 'ok', probedAtMs };
    this.verdicts.set(KEY, { ...verdict, latencyMillis: 12, egressIP: '198.51.100.7' });
  }

  #store(proxy: Proxy, metadata: Partial<Proxy['metadata']>): Proxy {
    const resourceVersion = String(Number(proxy.metadata.resourceVersion) + 1);
    this.proxy = { ...proxy, metadata: { ...proxy.metadata, ...metadata, resourceVersion } };
    return this.proxy;
  }

  #collect(): void {
    const metadata = this.proxy?.metadata;
    if (metadata?.deletionTimestamp !== undefined && metadata.finalizers.length === 0) {
      this.proxy = undefined;
    }
  }

  #writer() {
    const write = (what: string, decidedOn: Proxy, change: (stored: Proxy) => Proxy) =>
      this.around(what, async () => {
        if (this.proxy === undefined) throw kubeError(404, 'NotFound');
        if (this.proxy.metadata.resourceVersion !== decidedOn.metadata.resourceVersion) {
          throw kubeError(409, 'Conflict');
        }
        this.writes.push(what);
        const stored = change(this.proxy);
        this.#collect();
        return stored;
      });
    return {
      addFinalizer: async (proxy: Proxy) => {
        const { finalizers } = proxy.metadata;
        if (finalizers.includes(FINALIZER)) return proxy;
        return write('addFinalizer', proxy, (stored) =>
          this.#store(stored, { finalizers: [...finalizers, FINALIZER] }),
        );
      },
      removeFinalizer: (proxy: Proxy) =>
        write('removeFinalizer', proxy, (stored) => this.#store(stored, { finalizers: [] })),
      setAnnotation: (proxy: Proxy, key: string, value: string | undefined) =>
        write('setAnnotation', proxy, (stored) => {
          const { [key]: _, ...others } = stored.metadata.annotations;
          const annotations = value === undefined ? others : { ...others, [key]: value };
          return this.#store(stored, { annotations });
        }),
      patchStatus: (proxy: Proxy, status: ProxyStatus) =>
        write('patchStatus', proxy, (stored) => this.#store({ ...stored, status }, {})),
    };
  }
}

function kubeError(status: number, reason: 'NotFound' | 'Conflict'): KubeError {
  return new KubeError({ status, reason }, `PATCH proxies: ${status}`);
}
