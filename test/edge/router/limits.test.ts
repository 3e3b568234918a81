import { describe, expect, it } from 'vitest';
import { clientAt, parseClientLimits, strayLine } from '#edge/router/limits.ts';

function limitsOf(text: string) {
  const parsed = parseClientLimits(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.limits;
}

describe('CLIENT_LIMITS', () => {
  it('has a line per client, with either limit or both', () => {
    const limits = limitsOf('\n shop  leases=100\trate=20 \r\n\ncrawl rate=0.5\n* leases=7\n');
    expect([...limits]).toEqual([
      ['shop', { leases: 100, rate: 20, line: 2 }],
      ['crawl', { rate: 0.5, line: 4 }],
      ['*', { leases: 7, line: 5 }],
    ]);
    expect(limitsOf('').size).toBe(0);
  });

  const form = 'is not of the form "name leases=100 rate=20"';
  const faults: [string, string][] = [
    ['shop', `line 1 ${form}`],
    ['a leases=1\nshop=token-in-the-wrong-place', `line 2 ${form}`],
    ['shop leases=-1', `line 1 ${form}`],
    ['shop leases=1e3', `line 1 ${form}`],
    ['shop leases=', `line 1 ${form}`],
    ['shop lease=1', `line 1 ${form}`],
    ['shop leases=1, rate=2', `line 1 ${form}`],
    ['shop leases=1 leases=2', 'line 1 has leases twice'],
    ['shop leases=0', 'line 1 sets leases to no whole number, 1 to 1000000'],
    ['shop leases=1.5', 'line 1 sets leases to no whole number, 1 to 1000000'],
    ['shop rate=0', 'line 1 sets rate to nothing above 0, up to 1000000'],
    ['shop rate=1\n\nshop rate=2', 'line 3 names a client that has a line already'],
  ];
  for (const [text, problem] of faults) {
    it(`${JSON.stringify(text)} ${problem}`, () => {
      expect(parseClientLimits(text)).toEqual({ ok: false, problem });
    });
  }

  it('tells the line of a client that does not exist', () => {
    const limits = limitsOf('shop rate=1\n* rate=1\nghost rate=1');
    expect(strayLine(limits, ['shop', 'ghost'])).toBeUndefined();
    expect(strayLine(limits, ['shop'])).toBe(3);
  });
});

describe("a shard's share of a client's limits", () => {
  it('adds up to the whole', () => {
    const limits = limitsOf('shop leases=10 rate=3');
    for (const shards of [1, 3, 4, 64]) {
      const all = Array.from({ length: shards }, (_, shard) =>
        clientAt(limits, 'shop', shard, shards),
      );
      expect(all.reduce((sum, { leasesMax = 0 }) => sum + leasesMax, 0)).toBe(10);
      expect(all.reduce((sum, { perSecondMax = 0 }) => sum + perSecondMax, 0)).toBeCloseTo(3);
    }
  });

  it('is that of everybody for a client without a line, and none without either', () => {
    const limits = limitsOf('* leases=2\nshop rate=1');
    expect(clientAt(limits, 'other', 0, 1)).toEqual({ name: 'other', leasesMax: 2 });
    expect(clientAt(limits, 'shop', 0, 1)).toEqual({ name: 'shop', perSecondMax: 1 });
    expect(clientAt(limitsOf(''), '__proto__', 0, 1)).toEqual({ name: '__proto__' });
  });
});
