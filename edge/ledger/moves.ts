/**
 * Proxies that move from one shard to another when the number of shards changes, while leases on
 * them are live. A lease stays in the shard that granted it, whose number is in its id, until it
 * ends; the proxy goes over at once. That `maxLeases` holds all the same rests on this order: the
 * old shard first stops granting (`reshape`), tells how many leases are left, and only then the new
 * one begins to grant, counting those as its own. From then on the number can only fall, so that an
 * old answer to "how many are left" is always a safe one.
 */
import type { InventoryEntry } from '#shared/wire/sync.ts';
import type { Inventory } from './inventory.ts';
import type { Change, Cluster, Lease, MachineLeases } from './model.ts';
import { shardOfProxy } from './shards.ts';

/** A proxy that belongs to another shard now. */
export interface Strayed {
  readonly cluster: string;
  readonly uid: string;
  readonly shard: number;
}

export class Moves {
  readonly #inventory: Inventory;
  readonly #shard: number;
  /** A proxy may be here for the sake of its last leases only. */
  #hasLeaving = false;

  constructor(inventory: Inventory, shard: number) {
    this.#inventory = inventory;
    this.#shard = shard;
  }

  /** Whether there is, or may be, a proxy to be removed when its last lease has ended. */
  get hasLeaving(): boolean {
    return this.#hasLeaving;
  }

  /** From now on nothing is granted here that belongs elsewhere when there are so many shards. */
  reshape(cluster: Cluster, shards: number): Change[] {
    const { agent } = cluster;
    if (agent.nextShards === shards) return [];
    const change = this.#inventory.putAgent({ ...agent, nextShards: shards });
    this.mark(cluster);
    return [change];
  }

  /** Tells which of the cluster's proxies belong to other shards. */
  mark({ name, agent, proxies }: Cluster): void {
    for (const proxy of proxies.values()) {
      const owner =
        agent.nextShards === 0
          ? this.#shard
          : shardOfProxy(name, proxy.entry.uid, agent.nextShards);
      const leaving = owner !== this.#shard;
      this.#inventory.setLeaving(proxy, leaving);
      if (leaving) this.#hasLeaving = true;
    }
  }

  /** Live leases by UID on the cluster's proxies that belong to other shards. */
  leftovers(cluster: Cluster | undefined): Record<string, MachineLeases> {
    const left: Record<string, MachineLeases> = {};
    for (const [uid, { leaving, leases, entry }] of cluster?.proxies ?? []) {
      if (leaving && leases.size > 0) left[uid] = { instance: entry.instance, leases: leases.size };
    }
    return left;
  }

  /** Takes out the proxies whose last leases have ended. */
  sweep(): Change[] {
    if (!this.#hasLeaving) return [];
    const leaving = [...this.#inventory.all()].filter((proxy) => proxy.leaving);
    const done = leaving.filter((proxy) => proxy.leases.size === 0);
    this.#hasLeaving = done.length < leaving.length;
    return done.flatMap((proxy) => this.#inventory.remove(proxy));
  }

  /** Live leases on proxies that moved away, on the machines that they stand for now. */
  held(cluster: string, instances: Readonly<Record<string, string>>): Record<string, number> {
    const counts = Object.entries(instances).map(([uid, instance]): [string, number] => {
      const proxy = this.#inventory.find(cluster, uid);
      return [uid, proxy?.entry.instance === instance ? proxy.leases.size : 0];
    });
    return Object.fromEntries(counts);
  }

  /** Of which proxies other shards hold leases: by shard, their UIDs with their machines. */
  heldElsewhere(cluster: string): ReadonlyMap<number, Readonly<Record<string, string>>> {
    const byShard = new Map<number, Record<string, string>>();
    for (const [uid, proxy] of this.#inventory.clusters.get(cluster)?.proxies ?? []) {
      for (const { shard } of proxy.held) {
        const instances = byShard.get(shard) ?? {};
        byShard.set(shard, instances);
        instances[uid] = proxy.entry.instance;
      }
    }
    return byShard;
  }

  /** Another shard says how many leases it still holds of each of these. */
  setHeld(cluster: string, shard: number, counts: Readonly<Record<string, number>>): Change[] {
    const changes: Change[] = [];
    for (const [uid, leases] of Object.entries(counts)) {
      const proxy = this.#inventory.find(cluster, uid);
      const before = proxy?.held.find((held) => held.shard === shard)?.leases ?? 0;
      // Answers may overtake each other; the true number only ever falls.
      if (proxy === undefined || leases >= before) continue;
      const others = proxy.held.filter((held) => held.shard !== shard);
      const held = leases === 0 ? others : [...others, { shard, leases }];
      changes.push(this.#inventory.setHeld(proxy, held));
    }
    return changes;
  }

  /** What a proxy of this shard is now. */
  entry(cluster: string, uid: string): InventoryEntry | undefined {
    const proxy = this.#inventory.find(cluster, uid);
    return proxy?.leaving === false ? proxy.entry : undefined;
  }

  /** Where to ask about the proxy of a live lease, if that is not here. */
  strayed(lease: Lease | undefined): Strayed | undefined {
    const proxy = lease?.proxy;
    if (proxy === undefined || !proxy.leaving) return undefined;
    const { name: cluster, agent } = proxy.cluster;
    const { uid } = proxy.entry;
    return { cluster, uid, shard: shardOfProxy(cluster, uid, agent.nextShards) };
  }

  /** The shard that owns a proxy which is leaving here says what it is now. */
  follow(cluster: string, uid: string, entry: InventoryEntry | undefined): Change[] {
    const proxy = this.#inventory.find(cluster, uid);
    if (proxy === undefined || !proxy.leaving) return [];
    if (entry === undefined) return this.#inventory.remove(proxy);
    const changes = this.#inventory.merge(proxy.cluster, [entry], []);
    this.#inventory.setLeaving(proxy, true);
    return changes;
  }
}
