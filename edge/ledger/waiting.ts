/**
 * Requests that wait for a proxy, first come first served among those that can use the same ones.
 * Requests with the same wish are one group; whoever looks for a taker of a proxy asks each group
 * once, whatever its length.
 *
 * The queue is in memory: who waits has been promised nothing. It outlives a book that is built
 * again, which is handed the queue of the one before.
 */
import { Deadlines } from './deadlines.ts';
import { WAITING_MAX } from './model.ts';
import { selectorKey } from './selector.ts';
import type { AcquireTerms } from './terms.ts';

export interface Waiter {
  readonly terms: AcquireTerms;
  /** Lease ids that the request was made under; a repetition of it adds its own. */
  readonly ids: string[];
  readonly deadlineMs: number;
  readonly place: number;
}

export class Waiting {
  readonly #groups = new Map<string, Set<Waiter>>();
  readonly #byId = new Map<string, Waiter>();
  readonly #byKey = new Map<string, Waiter>();
  readonly #waiters = new Deadlines<Waiter>();
  #places = 0;

  get size(): number {
    return this.#waiters.size;
  }

  get isFull(): boolean {
    return this.#waiters.size >= WAITING_MAX;
  }

  find(id: string): Waiter | undefined {
    return this.#byId.get(id);
  }

  findByKey(idempotencyKey: string): Waiter | undefined {
    return this.#byKey.get(idempotencyKey);
  }

  add(terms: AcquireTerms, deadlineMs: number): void {
    const waiter = { terms, ids: [terms.leaseID], deadlineMs, place: ++this.#places };
    const group = this.#groups.get(groupKey(terms)) ?? new Set();
    this.#groups.set(groupKey(terms), group.add(waiter));
    this.#waiters.set(waiter, deadlineMs);
    this.#byId.set(terms.leaseID, waiter);
    if (terms.idempotency !== undefined) this.#byKey.set(terms.idempotency.key, waiter);
  }

  /** A repetition of the request waits with it. */
  join(waiter: Waiter, id: string): void {
    if (this.#byId.has(id)) return;
    waiter.ids.push(id);
    this.#byId.set(id, waiter);
  }

  /** Nobody waits under this id any more; returns the waiter that is gone by it. */
  leave(id: string): Waiter | undefined {
    const waiter = this.#byId.get(id);
    if (waiter === undefined) return undefined;
    this.#byId.delete(id);
    waiter.ids.splice(waiter.ids.indexOf(id), 1);
    if (waiter.ids.length > 0) return undefined;
    this.remove(waiter);
    return waiter;
  }

  remove(waiter: Waiter): void {
    const key = groupKey(waiter.terms);
    const group = this.#groups.get(key);
    group?.delete(waiter);
    if (group?.size === 0) this.#groups.delete(key);
    this.#waiters.delete(waiter);
    for (const id of waiter.ids) this.#byId.delete(id);
    const { idempotency } = waiter.terms;
    if (idempotency !== undefined) this.#byKey.delete(idempotency.key);
  }

  /** The one that came first of those whose wish `fits` and who `mayTake` a lease at all. */
  firstFor(
    fits: (terms: AcquireTerms) => boolean,
    mayTake: (terms: AcquireTerms) => boolean,
  ): Waiter | undefined {
    let first: Waiter | undefined;
    for (const group of this.#groups.values()) {
      const [head] = group;
      if (head === undefined || !fits(head.terms)) continue;
      for (const waiter of group) {
        if (first !== undefined && waiter.place > first.place) break;
        if (!mayTake(waiter.terms)) continue;
        first = waiter;
        break;
      }
    }
    return first;
  }

  /** All of them by the order of their coming, each with the group of those who wish the same. */
  inOrder(): { readonly waiter: Waiter; readonly group: unknown }[] {
    return [...this.#groups.values()]
      .flatMap((group) => [...group].map((waiter) => ({ waiter, group })))
      .sort((a, b) => a.waiter.place - b.waiter.place);
  }

  /** Takes out one whose time is over. */
  takeOverdue(nowMs: number): Waiter | undefined {
    const waiter = this.#waiters.takeDue(nowMs);
    if (waiter !== undefined) this.remove(waiter);
    return waiter;
  }

  /** When the first of them has waited long enough. */
  get nextDeadlineMs(): number | undefined {
    return this.#waiters.peek()?.dueMs;
  }
}

function groupKey({ wish }: AcquireTerms): string {
  return `${selectorKey(wish.selector)}\n${wish.target ?? ''}`;
}
