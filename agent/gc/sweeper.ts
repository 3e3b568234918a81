/**
 * Orphan GC: the net below the controller, for machines whose Proxy is gone without having taken
 * them along (a finalizer stripped by hand, a lost answer). It deletes what others cannot bring
 * back, so each doubt ends a sweep: an unknown or empty set of Proxies, a list that failed, a
 * machine seen ownerless only once. Runs in the leader alone, over providers that are guarded.
 */
import type { EventRecorder } from '#agent/kube/events.ts';
import { type Instance, PartialListError, type Provider } from '#agent/providers/provider.ts';
import { withDeadline } from '#agent/runtime/deadline.ts';
import { LeadershipLostError } from '#agent/runtime/leadership.ts';
import { runPeriodic } from '#agent/runtime/periodic.ts';
import type { Clock, Random } from '#shared/clock.ts';
import { API_VERSION } from '#shared/crd/names.ts';
import {
  findOrphans,
  type Ownership,
  orphanKey,
  ownMachines,
  selectDue,
  sightings,
} from './compare.ts';
import type { GcObserver, SweepResult } from './observer.ts';

export interface SweeperDeps {
  /** The providers of the moment; their deletes assert the leadership. */
  readonly providers: { list(): readonly Provider[] };
  /** The cache of Proxies. */
  readonly proxies: { list(): Iterable<{ readonly metadata: { readonly uid: string } }> };
  /** What keeps readers from relying on that cache; empty when all is well. */
  readonly cacheProblems: () => readonly string[];
  /** UIDs of all Proxies, straight from the API server; see `createLiveProxies`. */
  readonly listLive: (signal: AbortSignal) => Promise<Iterable<string>>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: GcObserver;
}

export interface SweeperOptions extends Ownership {
  readonly intervalMs: number;
  readonly minAgeMs: number;
  /** Sweep although `namespace` hides the Proxies of others. */
  readonly allowNamespaced: boolean;
}

export interface Sweeper {
  /** Sweeps after each interval, the first one included, until `signal` aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** One sweep. Throws when `signal` aborts or leadership is lost. */
  sweep(signal: AbortSignal): Promise<SweepResult>;
}

const LIST_PROXIES_DEADLINE_MS = 60_000;
/** Some backends are asked zone by zone or host by host. */
const LIST_MACHINES_DEADLINE_MS = 120_000;
const DELETE_DEADLINE_MS = 60_000;

/** One per leadership: what an earlier leader saw is not known to have stayed so. */
export function createSweeper(deps: SweeperDeps, options: SweeperOptions): Sweeper {
  if (options.installation === '') throw new Error('a sweeper needs the id of its installation');
  return new OrphanSweeper(deps, options);
}

/** The Proxies as one sweep knows them. */
interface Known {
  readonly live: ReadonlySet<string>;
  /** The API server has none at all: it may have lost them. */
  readonly none: boolean;
}

interface Listed {
  readonly machines: readonly Instance[];
  /** The provider vouches for there being no others. */
  readonly whole: boolean;
}

class OrphanSweeper implements Sweeper {
  readonly #deps: SweeperDeps;
  readonly #options: SweeperOptions;
  /** By provider: the orphans of its last completed sweep, and how often each was tried. */
  readonly #seen = new Map<string, Map<string, number>>();

  constructor(deps: SweeperDeps, options: SweeperOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, observer } = this.#deps;
    try {
      await runPeriodic({
        clock,
        random,
        intervalMs: this.#options.intervalMs,
        // There is one leader, so no fleet to keep from marching, and the first sweep comes a full
        // interval after the start.
        jitter: 0,
        signal,
        task: async (running) => observer.swept(await this.sweep(running)),
        onError(error) {
          observer.failed(error);
          observer.swept('failed');
        },
      });
    } finally {
      this.#forgetAllBut(new Set());
    }
  }

  async sweep(signal: AbortSignal): Promise<SweepResult> {
    const { observer } = this.#deps;
    const reason = this.#refusal();
    if (reason !== undefined) {
      observer.refused(reason);
      return 'refused';
    }
    // Before the machines: one that is released to run on loses its mark while its Proxy still is.
    const known = await this.#known(signal);
    if (known === undefined) return 'failed';
    const providers = this.#deps.providers.list();
    this.#forgetAllBut(new Set(providers.map(({ name }) => name)));
    const results: SweepResult[] = [];
    // One after the other: nothing is urgent here.
    for (const provider of providers) {
      results.push(await this.#sweepProvider(provider, known, signal));
    }
    const worst = (['held', 'partial'] as const).find((each) => results.includes(each));
    return worst ?? 'completed';
  }

  #refusal(): string | undefined {
    const { namespace, allowNamespaced } = this.#options;
    if (namespace !== undefined && !allowNamespaced) {
      return (
        `only the Proxies of the namespace ${namespace} are known (--proxy-namespace); ` +
        '--gc-allow-namespaced sweeps nevertheless'
      );
    }
    const problems = this.#deps.cacheProblems();
    return problems.length === 0 ? undefined : problems.join('; ');
  }

  /** Both views together: a Proxy in either is alive. Undefined when the server cannot tell. */
  async #known(signal: AbortSignal): Promise<Known | undefined> {
    const { clock, listLive, observer } = this.#deps;
    try {
      const listed = new Set(
        await withDeadline(clock, LIST_PROXIES_DEADLINE_MS, signal, (deadline) =>
          listLive(deadline),
        ),
      );
      return { live: new Set([...listed, ...this.#cached()]), none: listed.size === 0 };
    } catch (error) {
      signal.throwIfAborted();
      observer.failed(error);
      return undefined;
    }
  }

  #cached(): Set<string> {
    return new Set(Array.from(this.#deps.proxies.list(), ({ metadata }) => metadata.uid));
  }

  async #sweepProvider(
    provider: Provider,
    known: Known,
    signal: AbortSignal,
  ): Promise<SweepResult> {
    const { observer, clock } = this.#deps;
    const { name } = provider;
    const listed = await this.#machines(provider, signal);
    if (listed === undefined) return 'partial';
    const own = ownMachines(listed.machines, this.#options);
    // A wiped etcd and a removed CRD look like this; what is seen now says nothing of the machines.
    if (known.none && own.length > 0) {
      observer.heldBack(name, own.length);
      return 'held';
    }
    const { minAgeMs } = this.#options;
    const orphans = findOrphans(own, { live: known.live, nowMs: clock.now(), minAgeMs });
    const before = this.#seen.get(name) ?? new Map<string, number>();
    const due = selectDue(orphans, before, own.length);
    const seen = sightings(orphans, before);
    this.#seen.set(name, seen);
    observer.orphans(name, orphans.length, due.length);
    for (const orphan of due) {
      // Deleting takes its time; meanwhile the cache may have gone blind.
      if (this.#refusal() !== undefined) return 'partial';
      if (this.#cached().has(orphan.uid)) continue;
      seen.set(orphanKey(orphan), (seen.get(orphanKey(orphan)) ?? 0) + 1);
      await this.#collect(provider, orphan, signal);
    }
    return listed.whole ? 'completed' : 'partial';
  }

  /** Undefined when the provider cannot vouch for a list. */
  async #machines(provider: Provider, signal: AbortSignal): Promise<Listed | undefined> {
    const { clock, observer } = this.#deps;
    try {
      const list = (deadline: AbortSignal) => provider.listByTag(deadline);
      const machines = await withDeadline(clock, LIST_MACHINES_DEADLINE_MS, signal, list);
      return { machines, whole: true };
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof PartialListError) {
        // What is not listed is not judged, and what is listed is as certain as ever.
        observer.providerPartial(provider.name, error.unread);
        return { machines: error.instances, whole: false };
      }
      observer.providerSkipped(provider.name, error);
      return undefined;
    }
  }

  async #collect(provider: Provider, orphan: Instance, signal: AbortSignal): Promise<void> {
    const { clock, observer } = this.#deps;
    try {
      await withDeadline(clock, DELETE_DEADLINE_MS, signal, (deadline) =>
        provider.delete(orphan.id, deadline),
      );
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof LeadershipLostError) throw error;
      observer.deleteFailed(provider.name, orphan, error);
      return;
    }
    observer.deleted(provider.name, orphan);
    this.#tell(provider.name, orphan);
  }

  /** An Event on the Proxy that was: people look for it there, by namespace and name. */
  #tell(provider: string, { id, uid, proxy }: Instance): void {
    if (proxy === undefined) return;
    this.#deps.events.record({
      regarding: { apiVersion: API_VERSION, kind: 'Proxy', ...proxy, uid },
      type: 'Warning',
      reason: 'OrphanCollected',
      action: 'DeleteInstance',
      note: `deleted ${id} at ${provider}: its Proxy no longer exists`,
    });
  }

  #forgetAllBut(names: ReadonlySet<string>): void {
    for (const name of this.#seen.keys()) {
      if (names.has(name)) continue;
      this.#seen.delete(name);
      this.#deps.observer.providerForgotten(name);
    }
  }
}
