import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shardOfKey, shardOfLease, shardOfProxy, wholeShare } from '#edge/ledger/shards.ts';
import { nextToken } from '#edge/ledger/tokens.ts';

const uids = Array.from({ length: 8_000 }, (_, at) => `6f1c9a3e-0000-4000-8000-${at}`);

describe('the shard of a proxy', () => {
  it('is one of those that there are, evenly', () => {
    for (const shards of [1, 2, 3, 4, 7, 16, 64]) {
      const counts = Array.from({ length: shards }, () => 0);
      for (const uid of uids) {
        const shard = shardOfProxy('alpha', uid, shards);
        counts[shard] = (counts[shard] ?? 0) + 1;
      }
      expect(counts.reduce((sum, count) => sum + count)).toBe(uids.length);
      expect(Math.max(...counts)).toBeLessThan((uids.length / shards) * 1.4);
    }
  });

  it('is the same or the new one when a shard is added', () => {
    for (const shards of [1, 2, 3, 8]) {
      const moved = uids.filter((uid) => {
        const [before, after] = [shards, shards + 1].map((n) => shardOfProxy('alpha', uid, n));
        if (before !== after) expect(after).toBe(shards);
        return before !== after;
      });
      expect(moved.length / uids.length).toBeLessThan(1.3 / (shards + 1));
    }
  });

  it('is spread over the shards by keys too', () => {
    const seen = new Set(uids.slice(0, 100).map((key) => shardOfKey(key, 4)));
    expect(seen.size).toBe(4);
  });
});

describe('the id of a lease', () => {
  const ids: [string, number | undefined][] = [
    ['0.AbC', 0],
    ['63.AbC', 63],
    ['64.AbC', undefined],
    ['AbCdEf-_', 0],
    ['', undefined],
    ['x.y', undefined],
    ['100.y', undefined],
    ['%00', undefined],
  ];
  for (const [id, shard] of ids) {
    it(`${JSON.stringify(id)} names ${shard ?? 'no shard'}`, () => {
      expect(shardOfLease(id)).toBe(shard);
    });
  }
});

describe('the shares of a limit', () => {
  it('add up to it and differ by one at most', () => {
    fc.assert(
      fc.property(fc.nat(10_000), fc.integer({ min: 1, max: 64 }), (total, shards) => {
        const shares = Array.from({ length: shards }, (_, at) => wholeShare(total, at, shards));
        expect(shares.reduce((sum, share) => sum + share)).toBe(total);
        expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe('tokens', () => {
  it('grow whatever the clock does, never meet those of another shard, and stay exact', () => {
    const times = fc.array(fc.nat(2 ** 42), { maxLength: 50 });
    fc.assert(
      fc.property(times, fc.nat(63), fc.nat(63), (history, one, other) => {
        fc.pre(one !== other);
        const given = new Set<number>();
        for (const shard of [one, other]) {
          let last = 0;
          for (const nowMs of history) {
            const token = nextToken(last, nowMs, shard);
            expect(token).toBeGreaterThan(last);
            expect(Number.isSafeInteger(token)).toBe(true);
            expect(given.has(token)).toBe(false);
            given.add(token);
            last = token;
          }
        }
      }),
    );
  });

  it('of a later millisecond are above those of all shards before', () => {
    expect(nextToken(0, 1_001, 0)).toBeGreaterThan(nextToken(0, 1_000, 63));
  });
});
