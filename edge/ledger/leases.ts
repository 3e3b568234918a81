/**
 * The leases and their time. A lease ends by itself when its time is over, or with its proxy;
 * ended ones are remembered for `COOLDOWN_SECONDS` past their time, because a late report lands
 * exactly when the proxy is being banned. A released lease is forgotten at once: its holder has
 * said the last word.
 *
 * A lease is one row in a slot of its proxy. Granting writes the row, releasing marks it, expiring
 * writes nothing; a slot is free again when its lease is forgotten.
 *
 * `advance` brings the leases to a time and must come before every look at them.
 */
import { Deadlines } from './deadlines.ts';
import { type Change, LEASES_MAX, type Lease, type LeaseRow, type ProxyRecord } from './model.ts';
import type { Rules } from './rules.ts';

/** Slots of a proxy that was removed, until all its leases are forgotten. */
interface Ghost {
  slots: number;
  left: number;
}

export class Leases {
  readonly #rules: Rules;
  readonly #onEnd: (lease: Lease, proxy: ProxyRecord) => void;
  readonly #findProxy: (cluster: string, uid: string) => ProxyRecord | undefined;
  readonly #byId = new Map<string, Lease>();
  readonly #byKey = new Map<string, Lease>();
  /** Live leases by the end of their time, ended ones by the time when they are forgotten. */
  readonly #deadlines = new Deadlines<Lease>();
  readonly #byClient = new Map<string, Set<Lease>>();
  readonly #ghosts = new Map<string, Ghost>();
  /** Forgotten, and no lease will write over their rows. */
  readonly #doomed: LeaseRow[] = [];
  #live = 0;

  /** `onEnd` hears of each live lease that ends. */
  constructor(
    rules: Rules,
    findProxy: (cluster: string, uid: string) => ProxyRecord | undefined,
    onEnd: (lease: Lease, proxy: ProxyRecord) => void,
  ) {
    this.#rules = rules;
    this.#findProxy = findProxy;
    this.#onEnd = onEnd;
  }

  get isFull(): boolean {
    return this.#byId.size + this.#doomed.length >= LEASES_MAX;
  }

  /** How many leases are live. */
  get active(): number {
    return this.#live;
  }

  find(id: string): Lease | undefined {
    return this.#byId.get(id);
  }

  /** The live leases of each client that has any. */
  get byClient(): ReadonlyMap<string, ReadonlySet<Lease>> {
    return this.#byClient;
  }

  /** When the first of the client's leases ends by itself; infinite if it has none. */
  firstExpiryMs(client: string): number {
    let firstMs = Number.POSITIVE_INFINITY;
    for (const { row } of this.#byClient.get(client) ?? []) {
      firstMs = Math.min(firstMs, row.expiresMs);
    }
    return firstMs;
  }

  /** The live lease of an idempotency key. */
  findByKey(key: string): Lease | undefined {
    return this.#byKey.get(key);
  }

  /**
   * Takes in a row from storage. A lease whose machine is not there has ended: with the machine, or
   * before the machine went away.
   */
  restore(row: LeaseRow): void {
    const proxy = this.#findProxy(row.cluster, row.uid);
    if (proxy === undefined) {
      const ghost = this.#ghostOf(row);
      ghost.slots = Math.max(ghost.slots, row.slot + 1);
      ghost.left++;
    } else {
      proxy.usedToken = Math.max(proxy.usedToken, row.token);
      while (proxy.slots <= row.slot) proxy.freeSlots.push(proxy.slots++);
    }
    if (row.ended === 'released') {
      if (proxy === undefined) this.#freeSlot(row);
      return;
    }
    if (proxy !== undefined) proxy.freeSlots.splice(proxy.freeSlots.lastIndexOf(row.slot), 1);
    const isThere = row.ended === 'no' && proxy?.entry.instance === row.instance;
    const lease = this.#add(row, isThere ? proxy : undefined);
    // Whether it was answered to several is not written down.
    lease.isShared = row.idempotencyKey !== null;
  }

  /** A proxy is new: leases that it had in an earlier life keep their slots. */
  adopt(proxy: ProxyRecord): void {
    const key = ghostKey(proxy.cluster.name, proxy.entry.uid);
    proxy.slots = Math.max(proxy.slots, this.#ghosts.get(key)?.slots ?? 0);
    this.#ghosts.delete(key);
  }

  /** A new lease in a free slot of the proxy. */
  grant(proxy: ProxyRecord, terms: Omit<LeaseRow, 'cluster' | 'uid' | 'slot' | 'ended'>) {
    const slot = proxy.freeSlots.pop() ?? proxy.slots++;
    const { cluster, entry } = proxy;
    const row: LeaseRow = { cluster: cluster.name, uid: entry.uid, slot, ...terms, ended: 'no' };
    proxy.usedToken = row.token;
    const change: Change = { kind: 'put-lease', row };
    return { lease: this.#add(row, proxy), change };
  }

  renew(lease: Lease, ttlSeconds: number, nowMs: number): Change {
    lease.row = { ...lease.row, ttlSeconds, expiresMs: nowMs + ttlSeconds * 1000 };
    this.#schedule(lease);
    return { kind: 'put-lease', row: lease.row };
  }

  /** Ends a live lease together with its machine, which was seen behind `egress`. */
  endWithMachine(lease: Lease, egress: string): Change {
    this.#end(lease, 'gone');
    lease.row = { ...lease.row, ended: 'gone', egress };
    this.#schedule(lease);
    return { kind: 'put-lease', row: lease.row };
  }

  release(lease: Lease): Change {
    const row: LeaseRow = { ...lease.row, ended: 'released' };
    lease.row = row;
    this.#forget(lease);
    return { kind: 'release-lease', row };
  }

  /** The proxy is gone, its live leases having ended: the rows of its free slots go with it. */
  abandon(proxy: ProxyRecord): Change[] {
    const { cluster, entry, freeSlots: slots } = proxy;
    const left = proxy.slots - slots.length;
    if (left > 0) this.#ghosts.set(ghostKey(cluster.name, entry.uid), { slots: proxy.slots, left });
    if (slots.length === 0) return [];
    return [{ kind: 'delete-slots', cluster: cluster.name, uid: entry.uid, slots }];
  }

  /** Ends what has expired and forgets what is due, in memory; rows are `sweep`'s business. */
  advance(nowMs: number): void {
    for (;;) {
      const lease = this.#deadlines.takeDue(nowMs);
      if (lease === undefined) return;
      if (lease.state === 'live') {
        this.#end(lease, 'expired');
        this.#schedule(lease);
      } else {
        this.#forget(lease);
      }
    }
  }

  /** Deletes up to `rowsMax` rows that no lease will write over. */
  sweep(rowsMax: number): Change[] {
    return this.#doomed.splice(0, rowsMax).map((row) => ({ kind: 'delete-lease', row }));
  }

  /** When a lease ends, or one that has ended is forgotten. */
  get nextDueMs(): number | undefined {
    return this.#deadlines.peek()?.dueMs;
  }

  /** When there is a row to delete; undefined while there will be none. */
  get nextSweepMs(): number | undefined {
    if (this.#doomed.length > 0) return 0;
    return this.#ghosts.size > 0 ? (this.nextDueMs ?? undefined) : undefined;
  }

  #add(row: LeaseRow, proxy: ProxyRecord | undefined): Lease {
    const ended = row.ended === 'gone' ? 'gone' : 'expired';
    const state = proxy === undefined ? ended : 'live';
    const lease: Lease = { row, state, proxy, isShared: false, reported: undefined };
    this.#byId.set(row.id, lease);
    if (proxy !== undefined) {
      proxy.leases.add(lease);
      this.#live++;
      const own = this.#byClient.get(row.client) ?? new Set();
      this.#byClient.set(row.client, own.add(lease));
      if (row.idempotencyKey !== null) this.#byKey.set(row.idempotencyKey, lease);
    }
    this.#schedule(lease);
    return lease;
  }

  #schedule(lease: Lease): void {
    const { expiresMs } = lease.row;
    const dueMs = lease.state === 'live' ? expiresMs : expiresMs + this.#rules.cooldownMs;
    this.#deadlines.set(lease, dueMs);
  }

  /** Ends a live lease. */
  #end(lease: Lease, state: 'expired' | 'gone'): void {
    const { proxy, row } = lease;
    lease.state = state;
    if (proxy === undefined) return;
    lease.proxy = undefined;
    proxy.leases.delete(lease);
    this.#live--;
    const own = this.#byClient.get(row.client);
    own?.delete(lease);
    if (own?.size === 0) this.#byClient.delete(row.client);
    if (row.idempotencyKey !== null && this.#byKey.get(row.idempotencyKey) === lease) {
      this.#byKey.delete(row.idempotencyKey);
    }
    this.#onEnd(lease, proxy);
  }

  #forget(lease: Lease): void {
    this.#end(lease, 'expired');
    this.#deadlines.delete(lease);
    this.#byId.delete(lease.row.id);
    this.#freeSlot(lease.row);
  }

  #freeSlot(row: LeaseRow): void {
    const proxy = this.#findProxy(row.cluster, row.uid);
    if (proxy !== undefined) {
      proxy.freeSlots.push(row.slot);
      return;
    }
    this.#doomed.push(row);
    const key = ghostKey(row.cluster, row.uid);
    const ghost = this.#ghosts.get(key);
    if (ghost !== undefined && --ghost.left <= 0) this.#ghosts.delete(key);
  }

  #ghostOf(row: LeaseRow): Ghost {
    const key = ghostKey(row.cluster, row.uid);
    const ghost = this.#ghosts.get(key) ?? { slots: 0, left: 0 };
    this.#ghosts.set(key, ghost);
    return ghost;
  }
}

function ghostKey(cluster: string, uid: string): string {
  return `${cluster}/${uid}`;
}
