/**
 * The proxies of one cluster as its agent knows them, and how they change: machines fail, come back
 * and are replaced, proxies are cordoned, drained, removed and made again, addresses move.
 */
import type { Random } from '#shared/clock.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { between, pick } from '#test/integration/seed.ts';
import type { Version, Write } from './history.ts';
import { ADDRESSES, PROXIES_PER_CLUSTER, REGIONS, TIERS } from './settings.ts';

/** Proxies that are away at once, at most: the fleet stays contended, and there. */
const AWAY_MAX = 3;
/** How often one that cannot be had is made well, when it is its turn. */
const MENDED = 0.9;

type Change = (entry: InventoryEntry) => InventoryEntry;

export class Fleet {
  readonly #random: Random;
  readonly #cluster: string;
  readonly #present = new Map<string, Version>();
  readonly #away: InventoryEntry[] = [];
  readonly #uids: string[] = [];
  #lastNumber = 0;

  constructor(cluster: string, random: Random) {
    this.#random = random;
    this.#cluster = cluster;
    for (let index = 0; index < PROXIES_PER_CLUSTER; index++) {
      this.#put(this.#newEntry(`px-${String(index).padStart(2, '0')}`));
    }
  }

  /** All that there is. */
  get versions(): readonly Version[] {
    return [...this.#present.values()];
  }

  /** Every proxy that there ever was, as a full sync makes them: there, or not. */
  get everything(): Write[] {
    return this.#uids.map((uid) => ({ uid, version: this.#present.get(uid) ?? null }));
  }

  /** Changes something; the writes are in their order. */
  change(): Write[] {
    const entry = pick(this.#random, this.versions)?.entry;
    const isLast = entry === undefined || this.#away.length >= AWAY_MAX;
    if (isLast || (this.#away.length > 0 && this.#random() < 0.1)) return this.#comeBack();
    const roll = this.#random();
    if (roll < 0.05) return this.#remove(entry);
    if (roll < 0.07) return [...this.#remove(entry), ...this.#comeBack()];
    return [this.#put(this.#marked(this.#changed(entry)))];
  }

  #changed(entry: InventoryEntry): InventoryEntry {
    const isWell = entry.healthy === true && entry.leasable && !entry.draining;
    if (!isWell && this.#random() < MENDED) {
      return { ...entry, healthy: true, leasable: true, draining: false };
    }
    const change = pick(this.#random, this.#changes);
    return change === undefined ? entry : change(entry);
  }

  readonly #changes: readonly Change[] = [
    (entry) => ({ ...entry, healthy: false }),
    (entry) => ({ ...entry, healthy: null }),
    (entry) => ({ ...entry, leasable: false }),
    (entry) => ({ ...entry, draining: true }),
    (entry) => this.#replaced(entry),
    (entry) => this.#behind(entry, this.#address()),
    // An agent that has just started has not seen it; the machine is still behind it.
    (entry) => this.#behind(entry, undefined),
    (entry) => ({ ...entry, attributes: this.#attributes() }),
    (entry) => ({ ...entry, maxLeases: between(this.#random, 1, 3) }),
    (entry) => ({ ...entry, latencyMillis: between(this.#random, 1, 300) }),
    (entry) => ({ ...entry, latencyMillis: between(this.#random, 1, 300) }),
  ];

  #newEntry(name: string): InventoryEntry {
    const uid = `${this.#cluster}-${++this.#lastNumber}`;
    this.#uids.push(uid);
    const entry: InventoryEntry = {
      uid,
      namespace: 'crawl',
      name,
      instance: '',
      host: '',
      port: 1024,
      protocol: 'http',
      attributes: this.#attributes(),
      maxLeases: between(this.#random, 1, 3),
      healthy: true,
      latencyMillis: between(this.#random, 1, 300),
      leasable: true,
      draining: false,
    };
    return this.#replaced(entry);
  }

  /** Another machine; every machine of a run has a host of its own. */
  #replaced(entry: InventoryEntry): InventoryEntry {
    const instance = `${entry.uid}-m${++this.#lastNumber}`;
    const keepsAddress = this.#random() < 0.3;
    const machine = { ...entry, instance, host: `${instance}.proxies.test` };
    if (keepsAddress) return machine;
    return this.#behind(machine, this.#random() < 0.15 ? undefined : this.#address());
  }

  #behind({ egressIP: _, ...entry }: InventoryEntry, address: string | undefined): InventoryEntry {
    return address === undefined ? entry : { ...entry, egressIP: address };
  }

  /** Mostly with another port, by which an answer shows which state of the proxy it comes from. */
  #marked(entry: InventoryEntry): InventoryEntry {
    return this.#random() < 0.8 ? { ...entry, port: 1024 + (++this.#lastNumber % 60_000) } : entry;
  }

  #put(entry: InventoryEntry): Write {
    const version: Version = { entry };
    this.#present.set(entry.uid, version);
    return { uid: entry.uid, version };
  }

  #remove(entry: InventoryEntry): Write[] {
    this.#present.delete(entry.uid);
    this.#away.push(entry);
    return [{ uid: entry.uid, version: null }];
  }

  /** One that was removed: the same again, on another machine, or a new Proxy of its name. */
  #comeBack(): Write[] {
    const entry = this.#away.shift();
    if (entry === undefined) return [];
    const roll = this.#random();
    if (roll < 0.3) return [this.#put(entry)];
    return [this.#put(roll < 0.7 ? this.#replaced(entry) : this.#newEntry(entry.name))];
  }

  #attributes(): Record<string, string> {
    return {
      region: pick(this.#random, REGIONS) ?? '',
      tier: pick(this.#random, TIERS) ?? '',
    };
  }

  #address(): string {
    return `198.51.100.${between(this.#random, 1, ADDRESSES)}`;
  }
}
