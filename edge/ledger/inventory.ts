/**
 * The proxies of all clusters, and the changes that a sync makes to them. What a change means for
 * leases is the book's business: it is told which of them have lost their proxy.
 */
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { egressOf } from './egress.ts';
import type { AgentRow, Change, Cluster, Lease, ProxyRecord, ProxyRow, Snapshot } from './model.ts';

/** What a sync did to the inventory. */
export interface InventoryUpdate {
  readonly changes: Change[];
  /** Leases whose proxy was removed or replaced, with the egress that it had. */
  readonly bereaved: { readonly lease: Lease; readonly egress: string }[];
}

export class Inventory {
  readonly #clusters = new Map<string, Cluster>();
  #size = 0;
  /** All proxies in the order of listings; made when asked for, dropped when names change. */
  #ordered: readonly ProxyRecord[] | undefined;

  constructor(snapshot: Pick<Snapshot, 'agents' | 'proxies' | 'uses'>) {
    for (const agent of snapshot.agents) this.#open(agent);
    for (const { cluster, entry } of snapshot.proxies) {
      const known = this.#clusters.get(cluster);
      if (known !== undefined) this.#add(known, entry);
    }
    for (const { cluster, uid, token } of snapshot.uses) {
      const proxy = this.find(cluster, uid);
      if (proxy !== undefined) proxy.usedToken = token;
    }
  }

  /** Number of proxies. */
  get size(): number {
    return this.#size;
  }

  get clusters(): ReadonlyMap<string, Cluster> {
    return this.#clusters;
  }

  find(cluster: string, uid: string): ProxyRecord | undefined {
    return this.#clusters.get(cluster)?.proxies.get(uid);
  }

  *all(): Iterable<ProxyRecord> {
    for (const cluster of this.#clusters.values()) yield* cluster.proxies.values();
  }

  /** All proxies by cluster, namespace, name and UID. */
  ordered(): readonly ProxyRecord[] {
    this.#ordered ??= [...this.all()].sort(compareByName);
    return this.#ordered;
  }

  /** Where the agent of a cluster stands from now on. */
  putAgent(agent: AgentRow): Change {
    const cluster = this.#clusters.get(agent.cluster) ?? this.#open(agent);
    cluster.agent = agent;
    cluster.savedSyncMs = agent.lastSyncMs;
    return { kind: 'put-agent', row: agent };
  }

  /** The entries become all that the cluster has. */
  replace(cluster: Cluster, entries: readonly InventoryEntry[]): InventoryUpdate {
    const kept = new Set(entries.map((entry) => entry.uid));
    const gone = [...cluster.proxies.keys()].filter((uid) => !kept.has(uid));
    return this.merge(cluster, entries, gone);
  }

  /** Takes out `removes`, then enters `upserts`. Entries that say nothing new change no row. */
  merge(
    cluster: Cluster,
    upserts: readonly InventoryEntry[],
    removes: readonly string[],
  ): InventoryUpdate {
    const update: InventoryUpdate = { changes: [], bereaved: [] };
    for (const uid of removes) {
      const proxy = cluster.proxies.get(uid);
      if (proxy !== undefined) this.#remove(proxy, update);
    }
    // Of two entries with one UID the last counts.
    for (const entry of new Map(upserts.map((entry) => [entry.uid, entry])).values()) {
      const proxy = cluster.proxies.get(entry.uid);
      if (proxy === undefined) {
        this.#add(cluster, entry);
        update.changes.push(putProxy({ cluster: cluster.name, entry }));
      } else {
        this.#change(proxy, entry, update);
      }
    }
    return update;
  }

  #open(agent: AgentRow): Cluster {
    const cluster: Cluster = {
      name: agent.cluster,
      agent,
      savedSyncMs: agent.lastSyncMs,
      proxies: new Map(),
    };
    this.#clusters.set(cluster.name, cluster);
    return cluster;
  }

  #add(cluster: Cluster, entry: InventoryEntry): void {
    cluster.proxies.set(entry.uid, { cluster, entry, leases: new Set(), usedToken: 0 });
    this.#size++;
    this.#ordered = undefined;
  }

  #remove(proxy: ProxyRecord, update: InventoryUpdate): void {
    const { cluster, entry } = proxy;
    bereave(proxy, update);
    cluster.proxies.delete(entry.uid);
    this.#size--;
    this.#ordered = undefined;
    update.changes.push({ kind: 'delete-proxy', cluster: cluster.name, uid: entry.uid });
  }

  #change(proxy: ProxyRecord, next: InventoryEntry, update: InventoryUpdate): void {
    const before = proxy.entry;
    const replaced = next.instance !== before.instance;
    if (replaced) bereave(proxy, update);
    const entry = replaced ? next : withKnownEgress(next, before);
    if (JSON.stringify(entry) === JSON.stringify(before)) return;
    proxy.entry = entry;
    if (entry.namespace !== before.namespace || entry.name !== before.name) {
      this.#ordered = undefined;
    }
    update.changes.push(putProxy({ cluster: proxy.cluster.name, entry }));
  }
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

function bereave(proxy: ProxyRecord, update: InventoryUpdate): void {
  const egress = egressOf(proxy.cluster.name, proxy.entry);
  for (const lease of proxy.leases) update.bereaved.push({ lease, egress });
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
