/**
 * The proxies in one order of preference, kept so that the best one, and the reasons why there is
 * none, are found without looking at each.
 *
 * Every proxy has a position, in the order of preference, and is in one set of positions for what
 * it is now: withheld, unhealthy, full, or free with so many leases. What a selector matches and
 * what rests for a target are such sets too, made when they are first asked for and kept up to date
 * while they are among the last ones asked for. The best proxy is the lowest position of the least
 * loaded set that is in the selector's set and in no resting one: a few operations on words, 32
 * proxies each. Changing the state of a proxy moves one bit, however many selectors and targets are
 * in use; that is why there are sets and no heap per selector and target (decision 0009).
 */
import { BitSet, countBits, countCommon, lowestBit } from './bit-set.ts';
import { EVERY_TARGET } from './egress.ts';
import { LruMap } from './lru-map.ts';
import { loadOf, type ProxyRecord } from './model.ts';
import type { Order } from './orders.ts';
import { RestingSet } from './resting-set.ts';
import type { Rests } from './rests.ts';
import { matches, type Selector, selectorKey } from './selector.ts';

/** Selectors and targets whose sets are kept; others are made again when they are asked for. */
const SELECTORS_MAX = 64;
const TARGETS_MAX = 256;

/** Why each of the proxies that match is not given out. */
export interface Tally {
  atCapacity: number;
  inCooldown: number;
  unhealthy: number;
  withheld: number;
  /** When the first of them can be had by the mere passing of time; infinite when none can. */
  freeMs: number;
}

/** What is not the number of leases of a free proxy. */
const ABSENT = -1;
const WITHHELD = -2;
const UNHEALTHY = -3;
const FULL = -4;

/** undefined: everything matches, nothing rests. */
type Words = Int32Array | undefined;
type Resting = RestingSet | undefined;

interface Level {
  readonly load: number;
  readonly free: BitSet;
}

export class Candidates {
  readonly #order: Order;
  readonly #rests: Rests;
  #built = false;
  #at: (ProxyRecord | undefined)[] = [];
  #positions = new Map<ProxyRecord, number>();
  #states = new Int32Array(0);
  #withheld = new BitSet(0);
  #unhealthy = new BitSet(0);
  /** Neither withheld nor unhealthy; full or not. */
  #healthy = new BitSet(0);
  #full = new BitSet(0);
  /** Of a full proxy, when a lease of it ends by itself; infinite for all others. */
  #freeMs = new Float64Array(0);
  /** The lowest of each word's 32. */
  #wordFreeMs = new Float64Array(0);
  /** Least loaded first; none is empty. */
  #levels: Level[] = [];
  #selectors = new LruMap<string, { readonly selector: Selector; set: BitSet }>(SELECTORS_MAX);
  readonly #resting = new LruMap<string, RestingSet>(TARGETS_MAX);
  #end = 0;

  constructor(order: Order, rests: Rests) {
    this.#order = order;
    this.#rests = rests;
  }

  /** The order, or the proxies in it, are no longer what they were. */
  invalidate(): void {
    this.#built = false;
  }

  /** The attributes of a proxy changed: what matched it may match no more. */
  forget(proxy: ProxyRecord): void {
    this.remove(proxy);
    this.#built = false;
  }

  remove(proxy: ProxyRecord): void {
    const at = this.#positions.get(proxy);
    if (at === undefined) return;
    if (this.#built) this.#vacate(at);
    this.#positions.delete(proxy);
  }

  /** Brings everything up to date; to be called before looking. */
  build(byName: () => readonly ProxyRecord[]): void {
    if (this.#built) return;
    const proxies = this.#order.arrange(byName());
    const capacity = this.#order.usedGoesLast ? 2 * proxies.length + 64 : proxies.length;
    const before = this.#positions;
    const selectors = this.#selectors;
    this.#allocate(capacity);
    for (const proxy of proxies) this.#append(proxy);
    this.#selectors = new LruMap(SELECTORS_MAX);
    for (const [key, { selector, set }] of selectors.entries()) {
      const moved = new BitSet(capacity);
      for (const [proxy, at] of this.#positions) {
        const from = before.get(proxy);
        if (from === undefined ? matches(proxy, selector) : set.has(from)) moved.add(at);
      }
      this.#selectors.set(key, { selector, set: moved });
    }
    this.#built = true;
    for (const [proxy, at] of this.#positions) this.#put(proxy, at);
  }

  /** The leases, the health or the offer of a proxy changed. */
  touch(proxy: ProxyRecord): void {
    if (!this.#built) return;
    const at = this.#positions.get(proxy);
    if (at !== undefined) this.#put(proxy, at);
  }

  /** The rest of a proxy for a target began, changed or ended. */
  rested(proxy: ProxyRecord, target: string): void {
    if (!this.#built) return;
    const at = this.#positions.get(proxy);
    if (at !== undefined) this.#resting.peek(target)?.update(at);
  }

  /** The proxy was given out. */
  used(proxy: ProxyRecord): void {
    if (!this.#built || !this.#order.usedGoesLast) return;
    const from = this.#positions.get(proxy);
    if (from === undefined) return;
    if (this.#end >= this.#states.length) {
      this.#built = false;
      return;
    }
    const to = this.#append(proxy);
    for (const { set } of this.#selectors.values()) if (set.has(from)) set.add(to);
    this.#vacate(from);
    for (const set of this.#resting.values()) set.update(to);
    this.#put(proxy, to);
  }

  /** The best proxy for the selector and target that is free. */
  best(selector: Selector, target: string | null): ProxyRecord | undefined {
    const match = this.#matching(selector)?.words;
    const all = this.#restingFor(EVERY_TARGET)?.bits.words;
    const one = target === null ? undefined : this.#restingFor(target)?.bits.words;
    for (const { free } of this.#levels) {
      const { words, summary } = free;
      for (let s = 0; s < summary.length; s++) {
        for (let left = summary[s] ?? 0; left !== 0; left &= left - 1) {
          const w = (s << 5) + lowestBit(left);
          let word = words[w] ?? 0;
          if (match !== undefined) word &= match[w] ?? 0;
          if (all !== undefined) word &= ~(all[w] ?? 0);
          if (one !== undefined) word &= ~(one[w] ?? 0);
          if (word !== 0) return this.#at[(w << 5) + lowestBit(word)];
        }
      }
    }
    return undefined;
  }

  /** Why none is free. */
  tally(selector: Selector, target: string | null): Tally {
    const match = this.#matching(selector)?.words;
    const all = this.#restingFor(EVERY_TARGET);
    const one = target === null ? undefined : this.#restingFor(target);
    const tally = {
      atCapacity: 0,
      inCooldown: 0,
      unhealthy: countCommon(this.#unhealthy, match),
      withheld: countCommon(this.#withheld, match),
      freeMs: Number.POSITIVE_INFINITY,
    };
    this.#tallyFull(tally, match, all, one);
    this.#tallyResting(tally, match, all, one, target);
    return tally;
  }

  #tallyFull(tally: Tally, match: Words, all: Resting, one: Resting): void {
    const { words, summary } = this.#full;
    const wordFreeMs = this.#wordFreeMs;
    const allWords = all?.bits.words;
    const oneWords = one?.bits.words;
    for (let s = 0; s < summary.length; s++) {
      for (let left = summary[s] ?? 0; left !== 0; left &= left - 1) {
        const w = (s << 5) + lowestBit(left);
        let full = words[w] ?? 0;
        if (match !== undefined) full &= match[w] ?? 0;
        if (allWords !== undefined) full &= ~(allWords[w] ?? 0);
        if (oneWords !== undefined) full &= ~(oneWords[w] ?? 0);
        if (full === 0) continue;
        tally.atCapacity += countBits(full);
        if ((wordFreeMs[w] ?? 0) < tally.freeMs) this.#soonestFree(tally, w, full);
      }
    }
  }

  #tallyResting(
    tally: Tally,
    match: Words,
    all: Resting,
    one: Resting,
    target: string | null,
  ): void {
    const healthy = this.#healthy.words;
    for (const set of [all, one]) {
      if (set === undefined) continue;
      const { summary, words } = set.bits;
      const other = set === one ? all?.bits.words : undefined;
      for (let s = 0; s < summary.length; s++) {
        for (let left = summary[s] ?? 0; left !== 0; left &= left - 1) {
          const w = (s << 5) + lowestBit(left);
          let resting = (words[w] ?? 0) & (healthy[w] ?? 0);
          if (match !== undefined) resting &= match[w] ?? 0;
          if ((set.wordEndsMs[w] ?? 0) < tally.freeMs) {
            this.#soonestRested(tally, w, resting, target);
          }
          // What rests for both reasons is counted once.
          if (other !== undefined) resting &= ~(other[w] ?? 0);
          tally.inCooldown += countBits(resting);
        }
      }
    }
  }

  #soonestFree(tally: Tally, word: number, full: number): void {
    for (let left = full; left !== 0; left &= left - 1) {
      const at = (word << 5) + lowestBit(left);
      tally.freeMs = Math.min(tally.freeMs, this.#freeMs[at] ?? 0);
    }
  }

  #soonestRested(tally: Tally, word: number, resting: number, target: string | null): void {
    for (let left = resting; left !== 0; left &= left - 1) {
      const at = (word << 5) + lowestBit(left);
      const proxy = this.#at[at];
      if (proxy === undefined) continue;
      const restMs = Math.max(
        this.#rests.untilMs(proxy, EVERY_TARGET),
        target === null ? 0 : this.#rests.untilMs(proxy, target),
      );
      const slotMs = this.#full.has(at) ? (this.#freeMs[at] ?? 0) : 0;
      tally.freeMs = Math.min(tally.freeMs, Math.max(restMs, slotMs));
    }
  }

  #allocate(capacity: number): void {
    this.#at = [];
    this.#end = 0;
    this.#positions = new Map();
    this.#states = new Int32Array(capacity).fill(ABSENT);
    this.#withheld = new BitSet(capacity);
    this.#unhealthy = new BitSet(capacity);
    this.#healthy = new BitSet(capacity);
    this.#full = new BitSet(capacity);
    this.#freeMs = new Float64Array(capacity).fill(Number.POSITIVE_INFINITY);
    this.#wordFreeMs = new Float64Array((capacity + 31) >>> 5).fill(Number.POSITIVE_INFINITY);
    this.#levels = [];
    this.#resting.clear();
  }

  #append(proxy: ProxyRecord): number {
    const at = this.#end++;
    this.#at[at] = proxy;
    this.#positions.set(proxy, at);
    return at;
  }

  #vacate(at: number): void {
    this.#move(at, ABSENT, Number.POSITIVE_INFINITY);
    this.#at[at] = undefined;
    for (const { set } of this.#selectors.values()) set.delete(at);
    for (const set of this.#resting.values()) if (set.bits.has(at)) set.update(at);
  }

  #put(proxy: ProxyRecord, at: number): void {
    const { entry, cluster } = proxy;
    const load = loadOf(proxy);
    if (proxy.leaving) this.#move(at, ABSENT, Infinity);
    else if (!entry.leasable || entry.draining) this.#move(at, WITHHELD, Infinity);
    else if (entry.healthy !== true || cluster.stale) this.#move(at, UNHEALTHY, Infinity);
    else if (load >= entry.maxLeases) this.#move(at, FULL, slotFreeMs(proxy, load));
    else this.#move(at, load, Infinity);
  }

  #move(at: number, state: number, freeMs: number): void {
    const before = this.#states[at] ?? ABSENT;
    if (before !== state) {
      this.#states[at] = state;
      this.#withheld.put(at, state === WITHHELD);
      this.#unhealthy.put(at, state === UNHEALTHY);
      this.#healthy.put(at, state === FULL || state >= 0);
      this.#full.put(at, state === FULL);
      if (before >= 0) this.#leaveLevel(at, before);
      if (state >= 0) this.#level(state).add(at);
    }
    this.#setFreeMs(at, freeMs);
  }

  #setFreeMs(at: number, freeMs: number): void {
    const beforeMs = this.#freeMs[at] ?? Number.POSITIVE_INFINITY;
    if (beforeMs === freeMs) return;
    this.#freeMs[at] = freeMs;
    const word = at >>> 5;
    let lowestMs = this.#wordFreeMs[word] ?? Number.POSITIVE_INFINITY;
    if (freeMs <= lowestMs) lowestMs = freeMs;
    else if (beforeMs === lowestMs) {
      const start = word << 5;
      lowestMs = freeMs;
      for (let i = start; i < start + 32; i++) {
        lowestMs = Math.min(lowestMs, this.#freeMs[i] ?? Number.POSITIVE_INFINITY);
      }
    }
    this.#wordFreeMs[word] = lowestMs;
  }

  #level(load: number): BitSet {
    const index = this.#levels.findIndex((level) => level.load >= load);
    const found = this.#levels[index];
    if (found?.load === load) return found.free;
    const free = new BitSet(this.#states.length);
    this.#levels.splice(index === -1 ? this.#levels.length : index, 0, { load, free });
    return free;
  }

  #leaveLevel(at: number, load: number): void {
    const index = this.#levels.findIndex((level) => level.load === load);
    const free = this.#levels[index]?.free;
    free?.delete(at);
    if (free?.size === 0) this.#levels.splice(index, 1);
  }

  /** undefined: the selector matches everything. */
  #matching(selector: Selector): BitSet | undefined {
    const key = selectorKey(selector);
    if (key === '') return undefined;
    const known = this.#selectors.get(key)?.set;
    if (known !== undefined) return known;
    const set = new BitSet(this.#states.length);
    for (const [proxy, at] of this.#positions) if (matches(proxy, selector)) set.add(at);
    this.#selectors.set(key, { selector, set });
    return set;
  }

  /** undefined: nothing rests for the target. */
  #restingFor(target: string): RestingSet | undefined {
    const resting = this.#rests.of(target);
    if (resting === undefined) return undefined;
    const known = this.#resting.get(target);
    if (known !== undefined) return known;
    const set = new RestingSet(this.#states.length, (at) => {
      const proxy = this.#at[at];
      return proxy === undefined ? 0 : this.#rests.untilMs(proxy, target);
    });
    for (const [proxy, untilMs] of resting) {
      const at = this.#positions.get(proxy);
      if (at !== undefined) set.enter(at, untilMs);
    }
    this.#resting.set(target, set);
    return set;
  }
}

/** When expiry alone brings a full proxy below its capacity. */
function slotFreeMs(proxy: ProxyRecord, load: number): number {
  const excess = load - proxy.entry.maxLeases;
  if (excess === 0) {
    let firstMs = Number.POSITIVE_INFINITY;
    for (const { row } of proxy.leases) firstMs = Math.min(firstMs, row.expiresMs);
    return firstMs;
  }
  const ends = [...proxy.leases].map((lease) => lease.row.expiresMs).sort((a, b) => a - b);
  return ends[excess] ?? Number.POSITIVE_INFINITY;
}
