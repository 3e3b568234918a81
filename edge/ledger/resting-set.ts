/** The positions that rest for one target, and for every 32 of them when the first rest ends. */
import { BitSet, lowestBit } from './bit-set.ts';

export class RestingSet {
  readonly bits: BitSet;
  /** When the first rest among the 32 positions of each word ends; infinite without any. */
  readonly wordEndsMs: Float64Array;
  readonly #untilMs: (at: number) => number;

  /** `untilMs` tells until when a position rests; times are not kept twice. */
  constructor(capacity: number, untilMs: (at: number) => number) {
    this.bits = new BitSet(capacity);
    this.#untilMs = untilMs;
    this.wordEndsMs = new Float64Array(this.bits.words.length).fill(Number.POSITIVE_INFINITY);
  }

  /** The rest of a position began, changed or ended. */
  update(at: number): void {
    this.bits.put(at, this.#untilMs(at) > 0);
    const word = at >>> 5;
    let endMs = Number.POSITIVE_INFINITY;
    for (let left = this.bits.words[word] ?? 0; left !== 0; left &= left - 1) {
      endMs = Math.min(endMs, this.#untilMs((word << 5) + lowestBit(left)));
    }
    this.wordEndsMs[word] = endMs;
  }

  /** Enters a position that was not in it. */
  enter(at: number, untilMs: number): void {
    this.bits.add(at);
    const word = at >>> 5;
    const endMs = this.wordEndsMs[word] ?? Number.POSITIVE_INFINITY;
    this.wordEndsMs[word] = Math.min(endMs, untilMs);
  }
}
