/**
 * The proxies of all clusters, and the changes that a sync makes to them. What a change means for
 * leases, cooldowns and selection is the book's business: it is told of each by a hook.
 */
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { Deadlines } from './deadlines.ts';
import type {
  AgentRow,
  Change,
  Cluster,
  Handover,
  Held,
  LeaseRow,
  ProxyRecord,
  ProxyRow,
  Snapshot,
} from './model.ts';
import type { Rules } from './rules.ts';

/** What happens to a proxy, as it happens. The returned changes are made durable with it. */
export interface InventoryHooks {
  added(proxy: ProxyRecord): void;
  /** It is about to stand for another machine. */
  replacing(proxy: ProxyRecord): readonly Change[];
  changed(proxy: ProxyRecord, before: InventoryEntry): void;
  removed(proxy: ProxyRecord): readonly Change[];
  /** It can be offered, or can no more, for a reason that is not in its entry. */
  touched(proxy: ProxyRecord): void;
}

export class Inventory {
  readonly #rules: Rules;
  readonly #hooks: InventoryHooks;
  readonly #clusters = new Map<string, Cluster>();
  /** When each cluster becomes stale, if its agent stays silent. */
  readonly #staleness = new Deadlines<Cluster>();
  #size = 0;
  #length = 0;
  /** All proxies in the order of listings; made when asked for, dropped when names change. */
  #ordered: readonly ProxyRecord[] | undefined;

  constructor(rules: Rules, hooks: InventoryHooks) {
    this.#rules = rules;
    this.#hooks = hooks;
  }

  restore({ agents, proxies }: Pick<Snapshot, 'agents' | 'proxies'>): void {
    for (const agent of agents) this.putAgent(agent);
    for (const { cluster, entry, held } of proxies) {
      const known = this.#clusters.get(cluster);
      if (known !== undefined) this.#add(known, entry, held);
    }
  }

  /** Number of proxies. */
  get size(): number {
    return this.#size;
  }

  /** Length of all entries as JSON. */
  get length(): number {
    return this.#length;
  }

  get clusters(): ReadonlyMap<string, Cluster> {
    return this.#clusters;
  }

  find(cluster: string, uid: string): ProxyRecord | undefined {
    return this.#clusters.get(cluster)?.proxies.get(uid);
  }

  /** The proxy of a lease, while it is still the machine that was leased. */
  machineOf(row: Pick<LeaseRow, 'cluster' | 'uid' | 'instance'>): ProxyRecord | undefined {
    const proxy = this.find(row.cluster, row.uid);
    return proxy?.entry.instance === row.instance ? proxy : undefined;
  }

  *all(): Iterable<ProxyRecord> {
    for (const cluster of this.#clusters.values()) yield* cluster.proxies.values();
  }

  /** All proxies by cluster, namespace, name and UID. */
  ordered(): readonly ProxyRecord[] {
    this.#ordered ??= [...this.all()].sort(compareByName);
    return this.#ordered;
  }

  /** Notes which clusters have been silent for too long. */
  advance(nowMs: number): void {
    for (;;) {
      const cluster = this.#staleness.takeDue(nowMs);
      if (cluster === undefined) return;
      this.#setStale(cluster, true);
    }
  }

  /** Where the agent of a cluster stands from now on, to be written. */
  putAgent(agent: AgentRow): Change {
    const cluster = this.#clusters.get(agent.cluster) ?? this.#open(agent);
    this.heard(cluster, agent);
    cluster.savedSyncMs = agent.lastSyncMs;
    return { kind: 'put-agent', row: agent };
  }

  /** The same, without being written. */
  heard(cluster: Cluster, agent: AgentRow): void {
    const isNews = agent.lastSyncMs !== cluster.agent.lastSyncMs;
    cluster.agent = agent;
    this.#staleness.set(cluster, agent.lastSyncMs + this.#rules.agentStaleMs);
    if (isNews) this.#setStale(cluster, false);
  }

  /** The entries become all that the cluster has. */
  replace(
    cluster: Cluster,
    entries: readonly InventoryEntry[],
    handover: Handover | undefined,
  ): Change[] {
    const kept = new Set(entries.map((entry) => entry.uid));
    // What belongs to another shard now stays until its last lease has ended.
    const gone = [...cluster.proxies.values()].filter(
      (proxy) => !kept.has(proxy.entry.uid) && !(proxy.leaving && proxy.leases.size > 0),
    );
    const removes = gone.map((proxy) => proxy.entry.uid);
    return this.merge(cluster, entries, removes, handover);
  }

  /** Takes out `removes`, then enters `upserts`. Entries that say nothing new change no row. */
  merge(
    cluster: Cluster,
    upserts: readonly InventoryEntry[],
    removes: readonly string[],
    handover?: Handover,
  ): Change[] {
    const changes: Change[] = [];
    for (const uid of removes) {
      const proxy = cluster.proxies.get(uid);
      if (proxy !== undefined) changes.push(...this.remove(proxy));
    }
    // Of two entries with one UID the last counts.
    for (const entry of new Map(upserts.map((entry) => [entry.uid, entry])).values()) {
      const held = handover === undefined ? undefined : heldOf(entry, handover);
      const proxy = cluster.proxies.get(entry.uid);
      if (proxy !== undefined) {
        changes.push(...this.#change(proxy, entry, held));
        continue;
      }
      this.#add(cluster, entry, held ?? []);
      changes.push(putProxy({ cluster: cluster.name, entry, held: held ?? [] }));
    }
    return changes;
  }

  remove(proxy: ProxyRecord): Change[] {
    const { cluster, entry } = proxy;
    const changes = this.#hooks.removed(proxy);
    cluster.proxies.delete(entry.uid);
    this.#size--;
    this.#length -= proxy.length;
    this.#ordered = undefined;
    return [...changes, { kind: 'delete-proxy', cluster: cluster.name, uid: entry.uid }];
  }

  /** Other shards have ended leases that count against the proxy. */
  setHeld(proxy: ProxyRecord, held: readonly Held[]): Change {
    proxy.held = held;
    this.#hooks.touched(proxy);
    return putProxy({ cluster: proxy.cluster.name, entry: proxy.entry, held });
  }

  /** Whether the proxy is here for the sake of its last leases only. */
  setLeaving(proxy: ProxyRecord, leaving: boolean): void {
    if (proxy.leaving === leaving) return;
    proxy.leaving = leaving;
    this.#hooks.touched(proxy);
  }

  #open(agent: AgentRow): Cluster {
    const cluster: Cluster = {
      name: agent.cluster,
      agent,
      stale: false,
      savedSyncMs: agent.lastSyncMs,
      proxies: new Map(),
    };
    this.#clusters.set(cluster.name, cluster);
    return cluster;
  }

  #setStale(cluster: Cluster, stale: boolean): void {
    if (cluster.stale === stale) return;
    cluster.stale = stale;
    for (const proxy of cluster.proxies.values()) this.#hooks.touched(proxy);
  }

  #add(cluster: Cluster, entry: InventoryEntry, held: readonly Held[]): void {
    const proxy: ProxyRecord = {
      cluster,
      entry,
      length: lengthOf(entry),
      egresses: [],
      leases: new Set(),
      held,
      leaving: false,
      usedToken: 0,
      freeSlots: [],
      slots: 0,
    };
    cluster.proxies.set(entry.uid, proxy);
    this.#size++;
    this.#length += proxy.length;
    this.#ordered = undefined;
    this.#hooks.added(proxy);
  }

  #change(
    proxy: ProxyRecord,
    next: InventoryEntry,
    held: readonly Held[] | undefined,
  ): readonly Change[] {
    this.setLeaving(proxy, false);
    const before = proxy.entry;
    const replaced = next.instance !== before.instance;
    const changes = replaced ? [...this.#hooks.replacing(proxy)] : [];
    const entry = replaced ? next : withKnownEgress(next, before);
    const isSame = JSON.stringify(entry) === JSON.stringify(before);
    if (isSame && held === undefined) return changes;
    proxy.entry = entry;
    this.#length += lengthOf(entry) - proxy.length;
    proxy.length = lengthOf(entry);
    // What other shards hold is of the machine that is no more.
    proxy.held = held ?? (replaced ? [] : proxy.held);
    if (entry.namespace !== before.namespace || entry.name !== before.name) {
      this.#ordered = undefined;
    }
    this.#hooks.changed(proxy, before);
    return [...changes, putProxy({ cluster: proxy.cluster.name, entry, held: proxy.held })];
  }
}

/** Length of an entry as JSON. */
export function lengthOf(entry: InventoryEntry): number {
  return JSON.stringify(entry).length;
}

/** Leases on an earlier machine do not count: it is gone, and they with it. */
function heldOf({ uid, instance }: InventoryEntry, handover: Handover): readonly Held[] {
  return handover.leftovers.flatMap(({ shard, leases }) => {
    const left = Object.hasOwn(leases, uid) ? leases[uid] : undefined;
    return left?.instance === instance ? [{ shard, leases: left.leases }] : [];
  });
}

/**
 * A machine keeps the address that was last seen: an agent that has just started and not probed
 * yet must not make the edge forget under which address the machine is banned.
 */
function withKnownEgress(next: InventoryEntry, before: InventoryEntry): InventoryEntry {
  if (next.egressIP !== undefined || before.egressIP === undefined) return next;
  const { leasable, draining, ...head } = next;
  return { ...head, egressIP: before.egressIP, leasable, draining };
}

function putProxy(row: ProxyRow): Change {
  return { kind: 'put-proxy', row };
}

/** Total order of proxies: cluster, namespace, name, UID, each by code units. */
export function compareByName(a: ProxyRecord, b: ProxyRecord): number {
  return (
    compareText(a.cluster.name, b.cluster.name) ||
    compareText(a.entry.namespace, b.entry.namespace) ||
    compareText(a.entry.name, b.entry.name) ||
    compareText(a.entry.uid, b.entry.uid)
  );
}

export function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
