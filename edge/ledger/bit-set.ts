/**
 * A set of small integers, one bit each, with a summary that has one bit per word: what is sparse
 * is walked as fast as what is dense. An operation on many sets at once reads their words in step,
 * which is what selection is made of.
 */
export class BitSet {
  readonly words: Int32Array;
  /** Bit `i` says that word `i` is not zero. */
  readonly summary: Int32Array;
  #size = 0;

  /** For integers below `capacity`. */
  constructor(capacity: number) {
    this.words = new Int32Array((capacity + 31) >>> 5);
    this.summary = new Int32Array((this.words.length + 31) >>> 5);
  }

  get size(): number {
    return this.#size;
  }

  has(at: number): boolean {
    return (((this.words[at >>> 5] ?? 0) >>> (at & 31)) & 1) === 1;
  }

  add(at: number): void {
    const word = at >>> 5;
    const before = this.words[word] ?? 0;
    const after = before | (1 << (at & 31));
    if (after === before) return;
    this.words[word] = after;
    this.#size++;
    if (before === 0)
      this.summary[word >>> 5] = (this.summary[word >>> 5] ?? 0) | (1 << (word & 31));
  }

  delete(at: number): void {
    const word = at >>> 5;
    const before = this.words[word] ?? 0;
    const after = before & ~(1 << (at & 31));
    if (after === before) return;
    this.words[word] = after;
    this.#size--;
    if (after === 0) {
      this.summary[word >>> 5] = (this.summary[word >>> 5] ?? 0) & ~(1 << (word & 31));
    }
  }

  put(at: number, isIn: boolean): void {
    if (isIn) this.add(at);
    else this.delete(at);
  }
}

/** How many are in the set and among the bits of `match`; without it, in the set. */
export function countCommon({ words, summary, size }: BitSet, match: Int32Array | undefined) {
  if (match === undefined) return size;
  let count = 0;
  for (let s = 0; s < summary.length; s++) {
    for (let left = summary[s] ?? 0; left !== 0; left &= left - 1) {
      const w = (s << 5) + lowestBit(left);
      count += countBits((words[w] ?? 0) & (match[w] ?? 0));
    }
  }
  return count;
}

/** Index of the lowest bit that is set; 32 of none. */
export function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word);
}

/** Number of bits that are set. */
export function countBits(word: number): number {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}
