/**
 * Items ordered by the time at which something is due for them: an indexed binary heap, so that
 * an item can be moved or taken out without leaving a dead entry behind.
 */

interface Slot<T> {
  readonly item: T;
  dueMs: number;
  index: number;
}

export class Deadlines<T> {
  readonly #heap: Slot<T>[] = [];
  readonly #slots = new Map<T, Slot<T>>();

  get size(): number {
    return this.#heap.length;
  }

  has(item: T): boolean {
    return this.#slots.has(item);
  }

  /** The item that is due first, if there is any. */
  peek(): { readonly item: T; readonly dueMs: number } | undefined {
    return this.#heap[0];
  }

  /** Adds the item, or moves it to another time. */
  set(item: T, dueMs: number): void {
    const known = this.#slots.get(item);
    if (known !== undefined) {
      known.dueMs = dueMs;
      this.#settle(known);
      return;
    }
    const slot: Slot<T> = { item, dueMs, index: this.#heap.length };
    this.#heap.push(slot);
    this.#slots.set(item, slot);
    this.#settle(slot);
  }

  delete(item: T): void {
    const slot = this.#slots.get(item);
    const last = this.#heap.at(-1);
    if (slot === undefined || last === undefined) return;
    this.#slots.delete(item);
    this.#heap.pop();
    if (last === slot) return;
    this.#place(last, slot.index);
    this.#settle(last);
  }

  /** Takes out the first item if it is due at `nowMs`. */
  takeDue(nowMs: number): T | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.dueMs > nowMs) return undefined;
    this.delete(first.item);
    return first.item;
  }

  #place(slot: Slot<T>, index: number): void {
    this.#heap[index] = slot;
    slot.index = index;
  }

  #settle(slot: Slot<T>): void {
    this.#rise(slot);
    this.#sink(slot);
  }

  #rise(slot: Slot<T>): void {
    while (slot.index > 0) {
      const parent = this.#heap[(slot.index - 1) >> 1];
      if (parent === undefined || parent.dueMs <= slot.dueMs) return;
      this.#swap(slot, parent);
    }
  }

  #sink(slot: Slot<T>): void {
    for (;;) {
      const left = this.#heap[2 * slot.index + 1];
      const right = this.#heap[2 * slot.index + 2];
      const child =
        left !== undefined && right !== undefined && right.dueMs < left.dueMs ? right : left;
      if (child === undefined || child.dueMs >= slot.dueMs) return;
      this.#swap(slot, child);
    }
  }

  #swap(a: Slot<T>, b: Slot<T>): void {
    const index = a.index;
    this.#place(a, b.index);
    this.#place(b, index);
  }
}
