import { describe, expect, it } from 'vitest';
import { entry, Ledger, ledgerOf, START_MS } from './harness.ts';

describe('a granted lease', () => {
  it('tells all that a crawler needs', () => {
    const proxy = entry('a', { egressIP: '192.0.2.1', latencyMillis: 12, attributes: { r: 'eu' } });
    const ledger = ledgerOf(proxy);
    expect(ledger.granted({ target: 'example.com', ttlSeconds: 60 })).toEqual({
      leaseID: 'lease-1',
      token: START_MS * 1024,
      proxy: {
        cluster: 'c',
        namespace: 'crawl',
        name: 'a',
        host: 'a.example',
        port: 3128,
        protocol: 'http',
        url: 'http://a.example:3128',
        attributes: { r: 'eu' },
        egressIP: '192.0.2.1',
        latencyMillis: 12,
      },
      target: 'example.com',
      ttlSeconds: 60,
      expiresAt: new Date(START_MS + 60_000).toISOString(),
      expiresInMs: 60_000,
    });
  });

  it('lives for the default time when none is asked for', () => {
    expect(ledgerOf(entry('a')).granted().ttlSeconds).toBe(300);
  });

  it('writes one row', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 9 }));
    ledger.granted();
    ledger.granted();
    expect(ledger.changes.map((change) => change.kind)).toEqual(['put-lease']);
  });

  it('is refused a time above the maximum, and given the maximum itself', () => {
    const ledger = ledgerOf(entry('a'));
    const refusal = { ok: false, code: 'ttl_too_long', maxTtlSeconds: 3600 };
    expect(ledger.acquire({ ttlSeconds: 3601 })).toEqual(refusal);
    const { leaseID } = ledger.granted({ ttlSeconds: 3600 });
    expect(ledger.renew(leaseID, 3601)).toEqual(refusal);
    expect(ledger.changes).toEqual([]);
  });

  it('carries a token greater than any before it, also over restarts', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 5_000 }));
    const tokens: number[] = [];
    for (let round = 0; round < 3; round++) {
      for (let count = 0; count < 700; count++) tokens.push(ledger.granted().token);
      ledger.restart();
    }
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    expect(new Set(tokens).size).toBe(tokens.length);
  });
});

describe('the time of a lease', () => {
  it('ends exactly when it is over, without any sweep', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const { leaseID } = ledger.granted({ ttlSeconds: 60 });
    ledger.nowMs += 59_999;
    expect(ledger.get(leaseID)).toMatchObject({ ok: true, lease: { expiresInMs: 1 } });
    expect(ledger.refused()).toMatchObject({ atCapacity: 1, retryAfterSeconds: 1 });
    ledger.nowMs += 1;
    expect(ledger.get(leaseID)).toEqual({ ok: false, code: 'lease_expired' });
    expect(ledger.acquire()).toMatchObject({ ok: true });
  });

  it('counts from the renewal, be that longer or shorter than before', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted({ ttlSeconds: 60 });
    ledger.advance(30);
    expect(ledger.renew(leaseID, 100)).toMatchObject({ lease: { expiresInMs: 100_000 } });
    expect(ledger.renew(leaseID, 10)).toMatchObject({ lease: { expiresInMs: 10_000 } });
    expect(ledger.renew(leaseID)).toMatchObject({ lease: { expiresInMs: 300_000 } });
    ledger.advance(299);
    ledger.restart();
    expect(ledger.get(leaseID)).toMatchObject({ lease: { expiresInMs: 1_000 } });
  });

  it('cannot be renewed once it is over', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted({ ttlSeconds: 1 });
    ledger.advance(1);
    expect(ledger.renew(leaseID)).toEqual({ ok: false, code: 'lease_expired' });
  });

  it('is remembered for the cooldown time past its end, and its row is then written over', () => {
    const ledger = new Ledger({ agentStaleMs: 10 ** 9 });
    ledger.has(entry('a', { maxLeases: 2 }));
    const { leaseID } = ledger.granted({ ttlSeconds: 1 });
    ledger.nowMs += 300_999;
    expect(ledger.renew(leaseID)).toEqual({ ok: false, code: 'lease_expired' });
    ledger.granted();
    expect(ledger.store.snapshot().leases).toHaveLength(2);
    ledger.nowMs += 1;
    expect(ledger.renew(leaseID)).toEqual({ ok: false, code: 'unknown_lease' });
    ledger.granted();
    expect(ledger.store.snapshot().leases.map(({ id }) => id)).not.toContain(leaseID);
    expect(ledger.store.snapshot().leases).toHaveLength(2);
    expect(ledger.book.nextSweepMs).toBeUndefined();
  });

  it('does not come back when the clock steps back', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const { leaseID } = ledger.granted({ ttlSeconds: 60 });
    ledger.advance(60);
    const second = ledger.granted({ ttlSeconds: 60 });
    ledger.advance(-1);
    expect(ledger.get(leaseID)).toEqual({ ok: false, code: 'lease_expired' });
    expect(ledger.get(second.leaseID)).toMatchObject({ ok: true });
  });
});

describe('a release', () => {
  it('frees the slot at once, marks the row and forgets the lease', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const { leaseID } = ledger.granted();
    ledger.release(leaseID);
    expect(ledger.changes).toMatchObject([{ kind: 'release-lease', row: { id: leaseID } }]);
    for (const result of [ledger.get(leaseID), ledger.renew(leaseID)]) {
      expect(result).toEqual({ ok: false, code: 'unknown_lease' });
    }
    expect(ledger.report(leaseID, { result: 'banned' })).toMatchObject({ code: 'unknown_lease' });
    expect(ledger.acquire()).toMatchObject({ ok: true });
  });

  it('of an unknown or released lease changes nothing', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted();
    ledger.release(leaseID);
    ledger.release(leaseID);
    expect(ledger.changes).toEqual([]);
    ledger.release('never-granted');
    expect(ledger.changes).toEqual([]);
  });

  it('of an expired lease does not touch the lease of the next holder', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const first = ledger.granted({ ttlSeconds: 1 });
    ledger.advance(1);
    const second = ledger.granted();
    ledger.release(first.leaseID);
    expect(ledger.get(second.leaseID)).toMatchObject({ ok: true });
    expect(ledger.refused()).toMatchObject({ atCapacity: 1 });
  });
});

describe('a lease whose proxy goes away', () => {
  const changes = {
    'is removed': (ledger: Ledger) => ledger.sync('c', { kind: 'delta', removes: ['uid-a'] }),
    'is missing from a full sync': (ledger: Ledger) => ledger.has(entry('b')),
    'has another machine': (ledger: Ledger) => ledger.has(entry('a', { instance: 'a@2' })),
    'is removed and comes again in one sync': (ledger: Ledger) =>
      ledger.sync('c', { kind: 'delta', removes: ['uid-a'], upserts: [entry('a')] }),
  };
  for (const [name, change] of Object.entries(changes)) {
    it(`ends when the proxy ${name}, still takes reports, and holds no slot`, () => {
      const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
      const { leaseID } = ledger.granted({ ttlSeconds: 60 });
      expect(change(ledger)).toMatchObject({ ok: true });
      for (const restarts of [false, true]) {
        if (restarts) ledger.restart();
        expect(ledger.renew(leaseID)).toEqual({ ok: false, code: 'proxy_gone' });
        expect(ledger.get(leaseID)).toEqual({ ok: false, code: 'proxy_gone' });
        expect(ledger.report(leaseID, { result: 'banned', target: 't' })).toEqual({ ok: true });
      }
      expect(ledger.list().proxies.every((proxy) => proxy.activeLeases === 0)).toBe(true);
    });
  }

  it('lives on through every other change of the entry', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted();
    ledger.has(entry('a', { healthy: false, leasable: false, draining: true, maxLeases: 1 }));
    ledger.advance(200);
    expect(ledger.renew(leaseID)).toMatchObject({ ok: true });
  });
});

describe('the url of a lease', () => {
  const urls: [Partial<Parameters<typeof entry>[1]>, string][] = [
    [{ host: '192.0.2.7', port: 8080 }, 'http://192.0.2.7:8080'],
    [{ host: '2001:db8::1' }, 'http://[2001:db8::1]:3128'],
    [{ protocol: 'socks5' }, 'socks5://a.example:3128'],
    [
      { credentials: { username: 'a@b:c', password: "p/w?#%!'()* ü" } },
      'http://a%40b%3Ac:p%2Fw%3F%23%25%21%27%28%29%2A%20%C3%BC@a.example:3128',
    ],
    [{ credentials: { username: '\ud800', password: '' } }, 'http://%EF%BF%BD:@a.example:3128'],
  ];
  for (const [overrides, url] of urls) {
    it(`is ${url}`, () => {
      const lease = ledgerOf(entry('a', overrides)).granted();
      expect(lease.proxy.url).toBe(url);
      expect(URL.canParse(url)).toBe(true);
    });
  }
});
