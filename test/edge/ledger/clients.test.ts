import { describe, expect, it } from 'vitest';
import { Clients } from '#edge/ledger/clients.ts';
import { entry, ledgerOf } from './harness.ts';

describe('a limit of leases', () => {
  const client = { name: 'shop', leasesMax: 2 };

  it('is never exceeded, and says when the first lease ends', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 9 }));
    ledger.granted({ ttlSeconds: 60 }, { client });
    ledger.granted({ ttlSeconds: 30 }, { client });
    const refusal = { ok: false, code: 'too_many_leases', retryAfterSeconds: 30 };
    expect(ledger.acquire({}, { client })).toEqual(refusal);
    ledger.restart();
    expect(ledger.acquire({}, { client })).toEqual(refusal);
    expect(ledger.acquire({}, { client: { name: 'other', leasesMax: 2 } })).toMatchObject({
      ok: true,
    });
  });

  it('has room again after a release, an expiry and the end of a proxy', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 9 }), entry('b', { latencyMillis: 99 }));
    const first = ledger.granted({ ttlSeconds: 60 }, { client });
    ledger.granted({ ttlSeconds: 60 }, { client });
    ledger.release(first.leaseID);
    ledger.granted({ ttlSeconds: 10 }, { client });
    ledger.advance(10);
    ledger.granted({ ttlSeconds: 60 }, { client });
    ledger.has(entry('b'));
    ledger.granted({}, { client });
  });

  it('of nothing takes nothing', () => {
    const ledger = ledgerOf(entry('a'));
    expect(ledger.acquire({}, { client: { name: 'none', leasesMax: 0 } })).toEqual({
      ok: false,
      code: 'too_many_leases',
    });
  });
});

describe('a limit of requests per second', () => {
  it('takes a burst of one second, then one at a time', () => {
    const clients = new Clients();
    const admit = (nowMs: number) => clients.admit('shop', 2, nowMs);
    expect([0, 0, 0].map(admit)).toEqual([undefined, undefined, 1]);
    expect(admit(499)).toBe(1);
    expect(admit(500)).toBeUndefined();
    expect(admit(501)).toBe(1);
    expect([10_000, 10_000, 10_000].map(admit)).toEqual([undefined, undefined, 1]);
  });

  it('may be less than one, and says how long to wait', () => {
    const clients = new Clients();
    expect(clients.admit('slow', 0.1, 0)).toBeUndefined();
    expect(clients.admit('slow', 0.1, 0)).toBe(10);
    expect(clients.admit('slow', 0.1, 4_000)).toBe(6);
    expect(clients.admit('slow', 0.1, 10_000)).toBeUndefined();
  });

  it('is no other client’s, and none without a limit', () => {
    const clients = new Clients();
    for (let at = 0; at < 5; at++) expect(clients.admit('free', undefined, 0)).toBeUndefined();
    clients.admit('a', 1, 0);
    expect(clients.admit('a', 1, 0)).toBe(1);
    expect(clients.admit('b', 1, 0)).toBeUndefined();
  });

  it('lets nobody gain by a clock that steps back', () => {
    const clients = new Clients();
    clients.admit('a', 1, 10_000);
    expect(clients.admit('a', 1, 0)).toBe(1);
    expect(clients.admit('a', 1, 500)).toBe(1);
  });
});

describe('the figures of clients', () => {
  it('tell leases, outcomes and reports of each', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 2 }));
    const [shop, news] = [{ client: { name: 'shop' } }, { client: { name: 'news' } }];
    const { leaseID } = ledger.granted({}, shop);
    ledger.granted({}, news);
    ledger.refused({}, news);
    ledger.queue('w', {}, news);
    ledger.report(leaseID, { result: 'banned', target: 't' });
    expect(ledger.book.stats(ledger.nowMs).clients).toEqual([
      {
        name: 'news',
        activeLeases: 1,
        waiting: 1,
        outcomes: { granted: 1, no_match: 1 },
        reports: {},
      },
      {
        name: 'shop',
        activeLeases: 1,
        waiting: 0,
        outcomes: { granted: 1 },
        reports: { banned: 1 },
      },
    ]);
  });
});
