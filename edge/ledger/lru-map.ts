/** A map of at most `max` entries that drops the one that was looked up longest ago. */
export class LruMap<Key, Value> {
  readonly #entries = new Map<Key, Value>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get(key: Key): Value | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
  }

  /** The same, without counting as a look-up. */
  peek(key: Key): Value | undefined {
    return this.#entries.get(key);
  }

  /** Returns the entry that had to go, if one had to. */
  set(key: Key, value: Value): readonly [Key, Value] | undefined {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#max) return undefined;
    const oldest = this.#entries.entries().next().value;
    if (oldest !== undefined) this.#entries.delete(oldest[0]);
    return oldest;
  }

  delete(key: Key): boolean {
    return this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  entries(): Iterable<[Key, Value]> {
    return this.#entries.entries();
  }

  values(): Iterable<Value> {
    return this.#entries.values();
  }
}
