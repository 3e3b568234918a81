/** Which proxy a crawler gets, and why it gets none. */
import type { NoMatch } from '#shared/wire/errors.ts';
import type { Strategy } from '#shared/wire/lease.ts';
import { Candidates } from './candidates.ts';
import type { Inventory } from './inventory.ts';
import { loadOf, type ProxyRecord } from './model.ts';
import { fastestFirst, longestUnusedFirst } from './orders.ts';
import type { Rests } from './rests.ts';
import type { NoMatchRefusal } from './results.ts';
import { matches, type Selector } from './selector.ts';

export interface Wish {
  readonly selector: Selector;
  readonly target: string | null;
  readonly strategy: Strategy;
}

export class Selection {
  readonly #inventory: Inventory;
  readonly #rests: Rests;
  readonly #orders: Readonly<Record<Strategy, Candidates>>;
  readonly #improved = new Set<ProxyRecord>();
  /** Whether anybody waits for a proxy to become free. */
  isAwaited = false;

  constructor(inventory: Inventory, rests: Rests) {
    this.#inventory = inventory;
    this.#rests = rests;
    this.#orders = {
      'least-loaded': new Candidates(fastestFirst, rests),
      spread: new Candidates(longestUnusedFirst, rests),
    };
  }

  /** The best of the proxies that the selector matches and that can be offered now. */
  best({ selector, target, strategy }: Wish): ProxyRecord | undefined {
    return this.#built(strategy).best(selector, target);
  }

  /** Why no proxy can be offered, of which there must be none. */
  refusal({ selector, target, strategy }: Wish, nowMs: number): NoMatchRefusal {
    const tally = this.#built(strategy).tally(selector, target);
    const { atCapacity, inCooldown, unhealthy, withheld, freeMs } = tally;
    const considered = atCapacity + inCooldown + unhealthy;
    const counts = { considered, atCapacity, inCooldown, unhealthy, eligible: 0 };
    const noMatch: NoMatch =
      freeMs === Number.POSITIVE_INFINITY
        ? counts
        : { ...counts, retryAfterSeconds: Math.max(1, Math.ceil((freeMs - nowMs) / 1000)) };
    return { ok: false, code: 'no_match', noMatch, withheld };
  }

  /** Whether the proxy can be offered for the wish now. */
  fits(proxy: ProxyRecord, { selector, target }: Omit<Wish, 'strategy'>): boolean {
    return this.#isFree(proxy) && !this.#rests.isResting(proxy, target) && matches(proxy, selector);
  }

  /** Leases, health or offer of the proxy changed. */
  touch(proxy: ProxyRecord): void {
    for (const order of this.#all()) order.touch(proxy);
    if (this.isAwaited && this.#isFree(proxy)) this.#improved.add(proxy);
  }

  /** The proxy was given out. */
  used(proxy: ProxyRecord): void {
    for (const order of this.#all()) order.used(proxy);
    this.touch(proxy);
  }

  /** The rest of the proxy for the target began, changed or ended. */
  rested(proxy: ProxyRecord, target: string): void {
    for (const order of this.#all()) order.rested(proxy, target);
    if (this.isAwaited && this.#isFree(proxy)) this.#improved.add(proxy);
  }

  /** The proxy is new, or its place in an order is. */
  reorder(proxy: ProxyRecord): void {
    for (const order of this.#all()) order.invalidate();
    if (this.isAwaited) this.#improved.add(proxy);
  }

  /** The proxy matches other selectors than before. */
  relabel(proxy: ProxyRecord): void {
    for (const order of this.#all()) order.forget(proxy);
    if (this.isAwaited) this.#improved.add(proxy);
  }

  remove(proxy: ProxyRecord): void {
    for (const order of this.#all()) order.remove(proxy);
    this.#improved.delete(proxy);
  }

  /** Whether a proxy may have become free since `takeImproved`. */
  get hasImproved(): boolean {
    return this.#improved.size > 0;
  }

  /** Proxies that may have become free since this was asked last. */
  takeImproved(): readonly ProxyRecord[] {
    if (this.#improved.size === 0) return [];
    const improved = [...this.#improved];
    this.#improved.clear();
    return improved;
  }

  #isFree(proxy: ProxyRecord): boolean {
    const { entry, cluster } = proxy;
    return (
      entry.leasable &&
      !entry.draining &&
      !proxy.leaving &&
      entry.healthy === true &&
      !cluster.stale &&
      loadOf(proxy) < entry.maxLeases
    );
  }

  #built(strategy: Strategy): Candidates {
    const order = this.#orders[strategy];
    order.build(() => this.#inventory.ordered());
    return order;
  }

  #all(): readonly Candidates[] {
    return [this.#orders['least-loaded'], this.#orders.spread];
  }
}
