/**
 * The leases and their time. A lease ends by itself when its time is over, or with its proxy;
 * ended ones are remembered for `COOLDOWN_SECONDS` past their time, because a late report lands
 * exactly when the proxy is being banned. A released lease is forgotten at once: its holder has
 * said the last word.
 *
 * `advance` brings the leases to a time and must come before every look at them.
 */
import { Deadlines } from './deadlines.ts';
import { type Change, LEASES_MAX, type Lease, type LeaseRow, type ProxyRecord } from './model.ts';
import type { Rules } from './rules.ts';

export class Leases {
  readonly #rules: Rules;
  readonly #byId = new Map<string, Lease>();
  readonly #holders = new Map<Lease, ProxyRecord>();
  /** Live leases by the end of their time, ended ones by the time when they are forgotten. */
  readonly #deadlines = new Deadlines<Lease>();
  /** Forgotten, but their rows are still in storage. */
  readonly #forgotten: string[] = [];

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  get isFull(): boolean {
    return this.#byId.size + this.#forgotten.length >= LEASES_MAX;
  }

  /** How many leases are live. */
  get active(): number {
    return this.#holders.size;
  }

  find(id: string): Lease | undefined {
    return this.#byId.get(id);
  }

  /** The proxy of a live lease. */
  holderOf(lease: Lease): ProxyRecord | undefined {
    return this.#holders.get(lease);
  }

  /**
   * Enters a lease, new or from storage. One whose machine is not there has ended: with the
   * machine, or before the machine went away.
   */
  add(row: LeaseRow, proxy: ProxyRecord | undefined): Lease {
    const ended = row.gone ? 'gone' : 'expired';
    const lease: Lease = { row, state: proxy === undefined ? ended : 'live' };
    this.#byId.set(row.id, lease);
    if (proxy !== undefined) {
      proxy.leases.add(lease);
      this.#holders.set(lease, proxy);
    }
    this.#schedule(lease);
    return lease;
  }

  renew(lease: Lease, ttlSeconds: number, nowMs: number): Change {
    lease.row = { ...lease.row, ttlSeconds, expiresMs: nowMs + ttlSeconds * 1000 };
    this.#schedule(lease);
    return { kind: 'put-lease', row: lease.row };
  }

  /** Ends a live lease together with its proxy, which was seen behind `egress`. */
  endWithProxy(lease: Lease, egress: string): Change {
    this.#detach(lease);
    lease.state = 'gone';
    lease.row = { ...lease.row, gone: true, egress };
    this.#schedule(lease);
    return { kind: 'put-lease', row: lease.row };
  }

  release(lease: Lease): Change {
    this.#drop(lease);
    return { kind: 'delete-lease', id: lease.row.id };
  }

  /** Ends what has expired and forgets what is due, in memory; rows are `sweep`'s business. */
  advance(nowMs: number): void {
    for (;;) {
      const lease = this.#deadlines.takeDue(nowMs);
      if (lease === undefined) return;
      if (lease.state === 'live') {
        this.#detach(lease);
        lease.state = 'expired';
        this.#schedule(lease);
      } else {
        this.#drop(lease);
        this.#forgotten.push(lease.row.id);
      }
    }
  }

  /** Deletes up to `rowsMax` rows of forgotten leases. */
  sweep(rowsMax: number): Change[] {
    return this.#forgotten.splice(0, rowsMax).map((id) => ({ kind: 'delete-lease', id }));
  }

  /** When the row of a lease can be deleted: of the one whose time ends first, near enough. */
  get nextSweepMs(): number | undefined {
    if (this.#forgotten.length > 0) return 0;
    const first = this.#deadlines.peek();
    if (first === undefined) return undefined;
    return first.item.state === 'live' ? this.#forgetMs(first.item) : first.dueMs;
  }

  #schedule(lease: Lease): void {
    const dueMs = lease.state === 'live' ? lease.row.expiresMs : this.#forgetMs(lease);
    this.#deadlines.set(lease, dueMs);
  }

  #forgetMs(lease: Lease): number {
    return lease.row.expiresMs + this.#rules.cooldownMs;
  }

  #detach(lease: Lease): void {
    this.#holders.get(lease)?.leases.delete(lease);
    this.#holders.delete(lease);
  }

  #drop(lease: Lease): void {
    this.#detach(lease);
    this.#deadlines.delete(lease);
    this.#byId.delete(lease.row.id);
  }
}
