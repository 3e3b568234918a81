import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BitSet, countBits, lowestBit } from '#edge/ledger/bit-set.ts';

describe('a set of bits', () => {
  it('holds what was put in, whatever was put in and out', () => {
    const operations = fc.array(fc.tuple(fc.nat(2_999), fc.boolean()), { maxLength: 300 });
    fc.assert(
      fc.property(operations, (history) => {
        const bits = new BitSet(3_000);
        const model = new Set<number>();
        for (const [at, isIn] of history) {
          bits.put(at, isIn);
          if (isIn) model.add(at);
          else model.delete(at);
        }
        expect(bits.size).toBe(model.size);
        for (let at = 0; at < 3_000; at++) expect(bits.has(at)).toBe(model.has(at));
        bits.words.forEach((word, at) => {
          const summary = bits.summary[at >>> 5] ?? 0;
          expect((summary >>> (at & 31)) & 1).toBe(word === 0 ? 0 : 1);
        });
      }),
    );
  });

  it('counts and finds bits in any word', () => {
    fc.assert(
      fc.property(fc.integer(), (word) => {
        const text = (word >>> 0).toString(2);
        expect(countBits(word)).toBe([...text].filter((bit) => bit === '1').length);
        const lowest = text.length - 1 - text.lastIndexOf('1');
        expect(lowestBit(word)).toBe(word === 0 ? -1 : lowest);
      }),
    );
  });
});
