import { describe, expect, it } from 'vitest';
import { entry, Ledger } from './harness.ts';

function ledgerOf(...entries: Parameters<Ledger['has']>): Ledger {
  const ledger = new Ledger({ agentStaleMs: 10 ** 9 });
  ledger.has(...entries);
  return ledger;
}

/** Seconds for which the pair of all proxies and the target still rests; 0 when it does not. */
function rests(ledger: Ledger, target?: string): number {
  const result = ledger.look(target === undefined ? {} : { target });
  if (result.ok) return 0;
  if (result.code !== 'no_match') throw new Error(result.code);
  expect(result.noMatch.inCooldown).toBe(result.noMatch.considered);
  return result.noMatch.retryAfterSeconds ?? 0;
}

describe('the length of a cooldown', () => {
  it('is the setting for rate_limited and banned, and nothing for ok', () => {
    for (const [result, seconds] of [
      ['rate_limited', 300],
      ['banned', 300],
      ['ok', 0],
    ] as const) {
      const ledger = ledgerOf(entry('a'));
      ledger.report(ledger.granted({ target: 't' }).leaseID, { result });
      expect(rests(ledger, 't')).toBe(seconds);
    }
  });

  it('is what the target asked for, up to the maximum, and only for rate_limited', () => {
    const cases = [
      ['rate_limited', 1, 1],
      ['rate_limited', 3_600, 3_600],
      ['rate_limited', 10 ** 9, 86_400],
      ['banned', 1, 300],
    ] as const;
    for (const [result, retryAfterSeconds, seconds] of cases) {
      const ledger = ledgerOf(entry('a'));
      ledger.report(ledger.granted({ target: 't' }).leaseID, { result, retryAfterSeconds });
      expect(rests(ledger, 't')).toBe(seconds);
    }
  });

  it('ends to the millisecond', () => {
    const ledger = ledgerOf(entry('a'));
    ledger.report(ledger.granted({ target: 't' }).leaseID, { result: 'banned' });
    ledger.nowMs += 299_999;
    expect(rests(ledger, 't')).toBe(1);
    ledger.nowMs += 1;
    expect(rests(ledger, 't')).toBe(0);
  });

  it('doubles with every offence after a cooldown, up to the maximum', () => {
    const ledger = ledgerOf(entry('a'));
    const lengths: number[] = [];
    for (let offence = 0; offence < 11; offence++) {
      ledger.report(ledger.granted({ target: 't' }).leaseID, { result: 'banned' });
      lengths.push(rests(ledger, 't'));
      ledger.advance(lengths.at(-1) ?? 0);
    }
    const doubled = [300, 600, 1200, 2400, 4800, 9600, 19_200, 38_400, 76_800, 86_400, 86_400];
    expect(lengths).toEqual(doubled);
  });

  it('does not double when several leases report one ban', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 9 }));
    const leases = Array.from({ length: 9 }, () => ledger.granted({ target: 't' }));
    for (const { leaseID } of leases) ledger.report(leaseID, { result: 'banned' });
    expect(rests(ledger, 't')).toBe(300);
    ledger.advance(100);
    ledger.report(leases[0]?.leaseID ?? '', { result: 'banned' });
    expect(rests(ledger, 't')).toBe(300);
  });

  it('never gets shorter by a milder offence', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted({ target: 't' });
    ledger.report(leaseID, { result: 'banned' });
    ledger.report(leaseID, { result: 'rate_limited', retryAfterSeconds: 1 });
    expect(rests(ledger, 't')).toBe(300);
  });
});

describe('an ok', () => {
  it('of a lease granted after the cooldown makes the next offence a first one', () => {
    const ledger = ledgerOf(entry('a'));
    ledger.report(ledger.granted({ target: 't' }).leaseID, { result: 'banned' });
    ledger.advance(300);
    const { leaseID } = ledger.granted({ target: 't' });
    ledger.report(leaseID, { result: 'ok' });
    ledger.report(leaseID, { result: 'banned' });
    expect(rests(ledger, 't')).toBe(300);
  });

  it('of a lease granted before neither shortens the cooldown nor resets the doubling', () => {
    const ledger = ledgerOf(entry('a'));
    const old = ledger.granted({ target: 't', ttlSeconds: 3600 });
    ledger.report(ledger.granted({ target: 't' }).leaseID, { result: 'banned' });
    ledger.report(old.leaseID, { result: 'ok' });
    expect(rests(ledger, 't')).toBe(300);
    ledger.advance(300);
    ledger.report(old.leaseID, { result: 'ok' });
    ledger.report(ledger.granted({ target: 't' }).leaseID, { result: 'banned' });
    expect(rests(ledger, 't')).toBe(600);
  });

  it('for one target says nothing about another', () => {
    const ledger = ledgerOf(entry('a'));
    ledger.report(ledger.granted({ target: 't' }).leaseID, { result: 'banned' });
    ledger.advance(300);
    ledger.report(ledger.granted({ target: 't' }).leaseID, { result: 'ok', target: 'other' });
    ledger.report(ledger.granted({ target: 't' }).leaseID, { result: 'banned' });
    expect(rests(ledger, 't')).toBe(600);
  });
});

describe('the target of a report', () => {
  it('falls back from the report to the lease to every target', () => {
    const cases = [
      { lease: 'l', report: 'r', resting: ['r'], free: ['l', 'x', undefined] },
      { lease: 'l', report: undefined, resting: ['l'], free: ['x', undefined] },
      { lease: undefined, report: 'r', resting: ['r'], free: ['x', undefined] },
      { lease: undefined, report: undefined, resting: ['x', undefined], free: [] },
    ];
    for (const { lease, report, resting, free } of cases) {
      const ledger = ledgerOf(entry('a'));
      const { leaseID } = ledger.granted(lease === undefined ? {} : { target: lease });
      const target = report === undefined ? {} : { target: report };
      ledger.report(leaseID, { result: 'banned', ...target });
      for (const name of resting) expect(rests(ledger, name)).toBe(300);
      for (const name of free) expect(rests(ledger, name)).toBe(0);
    }
  });
});

describe('the egress of a cooldown', () => {
  const ban = (ledger: Ledger) => {
    const { leaseID } = ledger.granted({ target: 't' });
    ledger.report(leaseID, { result: 'banned' });
  };

  it('is the address: all proxies behind it rest, in every cluster', () => {
    const shared = { egressIP: '192.0.2.1' };
    const ledger = ledgerOf(entry('a', shared), entry('b', shared));
    ledger.sync('d', { kind: 'full', upserts: [entry('a', shared)] });
    ban(ledger);
    expect(ledger.refused({ target: 't' })).toMatchObject({ considered: 3, inCooldown: 3 });
  });

  it('is the machine alone while its address is unknown', () => {
    const ledger = ledgerOf(entry('a'), entry('b'));
    ban(ledger);
    expect(ledger.granted({ target: 't' }).proxy.name).toBe('b');
  });

  it('stays with the machine when its address becomes known', () => {
    const ledger = ledgerOf(entry('a'));
    ban(ledger);
    ledger.has(entry('a', { egressIP: '192.0.2.1' }));
    expect(rests(ledger, 't')).toBe(300);
  });

  it('is not forgotten by an agent that does not know the address yet', () => {
    const ledger = ledgerOf(entry('a', { egressIP: '192.0.2.1' }));
    ban(ledger);
    ledger.sync('c', { kind: 'full', session: 's2', seq: 1, upserts: [entry('a')] });
    expect(rests(ledger, 't')).toBe(300);
  });

  it('is new with a new machine at a new address, and old at the old address', () => {
    for (const [egressIP, seconds] of [
      ['192.0.2.2', 0],
      ['192.0.2.1', 300],
      [undefined, 0],
    ] as const) {
      const ledger = ledgerOf(entry('a', { egressIP: '192.0.2.1' }));
      ban(ledger);
      ledger.has(entry('a', { instance: 'a@2', ...(egressIP ? { egressIP } : {}) }));
      expect(rests(ledger, 't')).toBe(seconds);
    }
  });

  it('of a late report is the machine that was leased, not its replacement', () => {
    for (const isExpired of [false, true]) {
      const ledger = ledgerOf(entry('a', { egressIP: '192.0.2.1' }));
      const { leaseID } = ledger.granted({ target: 't', ttlSeconds: 10 });
      if (isExpired) ledger.advance(10);
      ledger.has(entry('a', { instance: 'a@2', egressIP: '192.0.2.2' }));
      ledger.restart();
      expect(ledger.report(leaseID, { result: 'banned' })).toEqual({ ok: true });
      expect(rests(ledger, 't')).toBe(0);
      ledger.has(entry('a', { instance: 'a@3', egressIP: '192.0.2.1' }));
      expect(rests(ledger, 't')).toBe(300);
    }
  });
});

describe('the memory of cooldowns', () => {
  it('ends when nothing happened for the longest cooldown, with the row', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted({ target: 't' });
    ledger.report(leaseID, { result: 'banned' });
    ledger.release(leaseID);
    ledger.nowMs += 300_000 + 86_400_000 - 1;
    ledger.sweep();
    expect(ledger.store.snapshot().cooldowns).toHaveLength(1);
    ledger.nowMs += 1;
    ledger.sweep();
    expect(ledger.store.snapshot().cooldowns).toEqual([]);
    expect(ledger.book.nextSweepMs).toBeUndefined();
  });

  it('is bounded: beyond it, ended cooldowns make room, and else the report is refused', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 999 }));
    for (let at = 0; at < 100; at++) {
      const { leaseID } = ledger.granted({ ttlSeconds: 3600 });
      for (let index = 0; index < 1_000; index++) {
        ledger.report(leaseID, { result: 'banned', target: `t${at}-${index}` });
      }
    }
    const { leaseID } = ledger.granted({ ttlSeconds: 3600 });
    const report = { result: 'banned', target: 'one-more' } as const;
    expect(ledger.report(leaseID, report)).toMatchObject({ ok: false, code: 'overloaded' });
    expect(ledger.report(leaseID, { result: 'banned', target: 't0-0' })).toEqual({ ok: true });
    ledger.advance(301);
    expect(ledger.report(leaseID, report)).toEqual({ ok: true });
    expect(ledger.store.snapshot().cooldowns).toHaveLength(100_000);
  });

  it('is not filled by one lease', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted();
    for (let index = 0; index < 1_000; index++) {
      const report = { result: 'banned', target: `t${index}` } as const;
      expect(ledger.report(leaseID, report)).toEqual({ ok: true });
    }
    const more = ledger.report(leaseID, { result: 'banned', target: 'more' });
    expect(more).toMatchObject({ ok: false, code: 'overloaded' });
  });

  it('is swept in bounded batches', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted();
    for (const target of ['x', 'y', 'z']) ledger.report(leaseID, { result: 'banned', target });
    ledger.advance(10 ** 6);
    ledger.sweep(2);
    expect(ledger.changes).toHaveLength(2);
    ledger.sweep(2);
    expect(ledger.changes).toHaveLength(1);
    ledger.sweep(2);
    expect(ledger.changes).toEqual([]);
  });
});
