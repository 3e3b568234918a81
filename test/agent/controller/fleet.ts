/** Many Proxies of one provider under one controller, in stepped time. */
import type { BrakeObserver } from '#agent/controller/brake.ts';
import { type ControllerOptions, createReconcile } from '#agent/controller/reconcile.ts';
import type { Verdict } from '#agent/health/verdict-reader.ts';
import type { ProxyEvent } from '#agent/kube/events.ts';
import { objectKey } from '#shared/crd/object-meta.ts';
import type { Proxy, ProxyStatus } from '#shared/crd/proxy.ts';
import { findCondition } from '#shared/crd/proxy-status.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { type Machine, MemoryProvider } from '#test/fakes/memory-provider.ts';
import { managed } from './harness.ts';

export class Fleet {
  readonly clock = new FakeClock();
  readonly provider = new MemoryProvider({ nowMs: () => this.clock.now() });
  readonly proxies = new Map<string, Proxy>();
  readonly events: ProxyEvent[] = [];
  readonly verdicts = new Map<string, Verdict>();
  writes = 0;
  readonly #options: ControllerOptions;
  readonly #observer: BrakeObserver;
  #reconcile: ReturnType<typeof createReconcile>;

  constructor(count: number, observer: BrakeObserver, options: ControllerOptions = {}) {
    this.#observer = observer;
    this.#options = options;
    for (let nth = 0; nth < count; nth++) {
      this.#store(managed({}, { name: `p${nth}`, uid: `uid-${nth}` }));
    }
    this.#reconcile = this.restart();
  }

  get keys(): string[] {
    return [...this.proxies.keys()];
  }

  restart(): ReturnType<typeof createReconcile> {
    const changed = async (proxy: Proxy, change: Partial<Proxy>) =>
      this.#store({ ...proxy, ...change });
    const meta = (proxy: Proxy, metadata: Partial<Proxy['metadata']>) =>
      changed(proxy, { metadata: { ...proxy.metadata, ...metadata } });
    this.#reconcile = createReconcile(
      {
        proxies: this.proxies,
        writer: {
          addFinalizer: async (proxy) =>
            proxy.metadata.finalizers.length > 0 ? proxy : meta(proxy, { finalizers: ['f'] }),
          removeFinalizer: (proxy) => meta(proxy, { finalizers: [] }),
          setAnnotation: (proxy, key, value) =>
            meta(proxy, { annotations: value === undefined ? {} : { [key]: value } }),
          patchStatus: (proxy: Proxy, status: ProxyStatus) => {
            this.writes++;
            return changed(proxy, { status });
          },
        },
        providers: { get: () => this.provider },
        verdicts: { verdict: (key) => this.verdicts.get(key) },
        secrets: { get: async () => undefined },
        cloudInitSecrets: { get: () => undefined },
        events: { record: (event) => void this.events.push(event) },
        leases: { remaining: () => 0 },
        installation: 'here',
        clock: this.clock,
        observer: this.#observer,
      },
      this.#options,
    );
    return this.#reconcile;
  }

  /** Every Proxy once, then the time goes on. */
  async round(afterMs = 1000): Promise<void> {
    for (const key of this.keys) await this.#reconcile(key, new AbortController().signal);
    await this.clock.advance(afterMs);
  }

  async ready(): Promise<void> {
    for (const key of this.keys) {
      const verdict = { healthy: true, reason: 'Healthy', message: 'ok', probedAtMs: 1 };
      this.verdicts.set(key, verdict);
    }
    for (let round = 0; round < 4; round++) await this.round();
  }

  edit(key: string, spec: object): void {
    const proxy = this.#proxy(key);
    const generation = proxy.metadata.generation + 1;
    const metadata = { ...proxy.metadata, generation };
    this.#store({ ...proxy, metadata, spec: { ...proxy.spec, ...spec } });
  }

  machine(key: string): Machine {
    const machine = this.provider.machines.get(this.#proxy(key).status.providerID ?? '');
    if (machine === undefined) throw new Error(`${key} has no machine`);
    return machine;
  }

  message(key: string, type: 'Healthy' | 'Provisioned'): string {
    return findCondition(this.#proxy(key).status, type)?.message ?? '';
  }

  phase(key: string) {
    return this.#proxy(key).status.phase;
  }

  #proxy(key: string): Proxy {
    const proxy = this.proxies.get(key);
    if (proxy === undefined) throw new Error(`${key} is gone`);
    return proxy;
  }

  #store(proxy: Proxy): Proxy {
    this.proxies.set(objectKey(proxy.metadata), proxy);
    return proxy;
  }
}
