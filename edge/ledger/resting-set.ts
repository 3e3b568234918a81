/** The positions that rest for one target, and for every 32 of them when the first rest ends. */
import { BitSet, lowestBit } from './bit-set.ts';

export class RestingSet {
  readonly bits: BitSet;
  readonly #untilMs: (at: number) => number;
  readonly #wordEndMs: Float64Array;

  /** `untilMs` tells until when a position rests; times are not kept twice. */
  constructor(capacity: number, untilMs: (at: number) => number) {
    this.bits = new BitSet(capacity);
    this.#untilMs = untilMs;
    this.#wordEndMs = new Float64Array(this.bits.words.length).fill(Number.POSITIVE_INFINITY);
  }

  /** When the first rest among the 32 positions of a word ends. */
  wordEndMs(word: number): number {
    return this.#wordEndMs[word] ?? Number.POSITIVE_INFINITY;
  }

  /** The rest of a position began, changed or ended. */
  update(at: number): void {
    this.bits.put(at, this.#untilMs(at) > 0);
    const word = at >>> 5;
    let endMs = Number.POSITIVE_INFINITY;
    for (let left = this.bits.words[word] ?? 0; left !== 0; left &= left - 1) {
      endMs = Math.min(endMs, this.#untilMs((word << 5) + lowestBit(left)));
    }
    this.#wordEndMs[word] = endMs;
  }

  /** Enters a position that was not in it. */
  enter(at: number, untilMs: number): void {
    this.bits.add(at);
    this.#wordEndMs[at >>> 5] = Math.min(this.wordEndMs(at >>> 5), untilMs);
  }
}
