/** A backend, an API server's Proxies and the cache of them, with a sweeper over all. */
import type { SweepResult } from '#agent/gc/observer.ts';
import { createSweeper, type Sweeper, type SweeperOptions } from '#agent/gc/sweeper.ts';
import type { ProxyEvent } from '#agent/kube/events.ts';
import { errorClass } from '#agent/providers/errors.ts';
import type { Instance, Provider } from '#agent/providers/provider.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { MemoryProvider } from '#test/fakes/memory-provider.ts';

export const MINUTE_MS = 60_000;
export const INSTALLATION = 'ours';
const never = new AbortController().signal;

export class GcWorld {
  readonly clock = new FakeClock();
  readonly provider = this.newProvider('memory');
  /** UIDs at the API server and in the cache; a Proxy that is there is in both, as a rule. */
  readonly listed = new Set<string>(['bystander']);
  readonly cached = new Set<string>(['bystander']);
  readonly told: string[] = [];
  readonly events: ProxyEvent[] = [];
  providers: Provider[] = [this.provider];
  problems: string[] = [];
  listLive: (signal: AbortSignal) => Promise<Iterable<string>> = async () => [...this.listed];
  readonly sweeper: Sweeper;

  constructor(options: Partial<SweeperOptions> = {}) {
    this.sweeper = createSweeper(
      {
        providers: { list: () => this.providers },
        proxies: { list: () => Array.from(this.cached, (uid) => ({ metadata: { uid } })) },
        cacheProblems: () => this.problems,
        listLive: (signal) => this.listLive(signal),
        events: { record: (event) => void this.events.push(event) },
        clock: this.clock,
        random: () => 0.5,
        observer: this.#observer(),
      },
      {
        installation: INSTALLATION,
        intervalMs: 10 * MINUTE_MS,
        minAgeMs: 10 * MINUTE_MS,
        allowNamespaced: false,
        ...options,
      },
    );
  }

  newProvider(name: string): MemoryProvider {
    return new MemoryProvider({ name, polls: 0, nowMs: () => this.clock.now() });
  }

  /** A machine that was made just now; its name is that of its owner. */
  async machine(
    uid: string,
    installation = INSTALLATION,
    provider = this.provider,
  ): Promise<string> {
    const place = { namespace: 'crawl', proxyName: uid, placement: {}, port: 3128 };
    return provider.create({ uid, installation, name: uid || 'unmarked', ...place }, never);
  }

  /** Time for everything that exists to be old enough. */
  age(): Promise<void> {
    return this.clock.advance(11 * MINUTE_MS);
  }

  async sweep(times = 1, signal: AbortSignal = never): Promise<SweepResult[]> {
    const results: SweepResult[] = [];
    for (let nth = 0; nth < times; nth++) results.push(await this.sweeper.sweep(signal));
    return results;
  }

  /** Ids of the deletes that reached the backend. */
  deletes(provider = this.provider): string[] {
    const deletes = provider.requests.filter((request) => request.startsWith('delete '));
    return deletes.map((request) => request.slice('delete '.length));
  }

  #observer() {
    const tell = (line: string) => void this.told.push(line);
    return {
      swept: (result: SweepResult) => tell(`swept ${result}`),
      refused: (reason: string) => tell(`refused: ${reason}`),
      failed: (error: unknown) => tell(`failed: ${error instanceof Error ? error.name : error}`),
      heldBack: (provider: string, machines: number) => tell(`held ${provider} ${machines}`),
      providerSkipped: (provider: string) => tell(`skipped ${provider}`),
      providerPartial: (provider: string) => tell(`partial ${provider}`),
      orphans: (provider: string, count: number, due: number) =>
        tell(`orphans ${provider} ${count} due ${due}`),
      providerForgotten: (provider: string) => tell(`forgotten ${provider}`),
      deleted: (provider: string, { id, uid }: Instance) =>
        tell(`deleted ${provider} ${id} ${uid}`),
      deleteFailed: (provider: string, { id }: Instance, error: unknown) =>
        tell(`cannot delete ${provider} ${id} ${errorClass(error)}`),
    };
  }
}
