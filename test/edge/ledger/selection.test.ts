import { describe, expect, it } from 'vitest';
import { entry, Ledger, ledgerOf } from './harness.ts';

function names(ledger: Ledger, count: number, request: Parameters<Ledger['granted']>[0]): string[] {
  return Array.from({ length: count }, () => ledger.granted(request).proxy.name);
}

describe('least-loaded', () => {
  it('takes the fewest active leases first, then the lowest latency, then the name', () => {
    const ledger = ledgerOf(
      entry('unmeasured'),
      entry('slow', { latencyMillis: 90 }),
      entry('b', { latencyMillis: 5 }),
      entry('a', { latencyMillis: 5 }),
    );
    expect(names(ledger, 5, {})).toEqual(['a', 'b', 'slow', 'unmeasured', 'a']);
  });
});

describe('spread', () => {
  it('takes the fewest active leases first, then the longest unused, whatever the latency', () => {
    const ledger = ledgerOf(entry('a', { latencyMillis: 1 }), entry('b'), entry('c'));
    const used: string[] = [];
    for (let round = 0; round < 6; round++) {
      const lease = ledger.granted({ strategy: 'spread' });
      used.push(lease.proxy.name);
      ledger.release(lease.leaseID);
    }
    expect(used).toEqual(['a', 'b', 'c', 'a', 'b', 'c']);
  });

  it('counts uses under the other strategy as uses', () => {
    const ledger = ledgerOf(entry('a'), entry('b'));
    ledger.release(ledger.granted().leaseID);
    expect(ledger.granted({ strategy: 'spread' }).proxy.name).toBe('b');
  });

  it('goes on after a restart where it was', () => {
    const ledger = ledgerOf(entry('a'), entry('b'), entry('c'));
    ledger.release(ledger.granted({ strategy: 'spread' }).leaseID);
    ledger.restart();
    expect(ledger.granted({ strategy: 'spread' }).proxy.name).toBe('b');
  });
});

describe('a selector', () => {
  const fleet = [
    entry('a', { attributes: { region: 'eu', tier: '1' } }),
    entry('b', { attributes: { region: 'eu', tier: '2' } }),
    entry('c', { attributes: { region: 'us' } }),
  ];
  const cases: [Record<string, string>, string[]][] = [
    [{}, ['a', 'b', 'c']],
    [{ region: 'eu' }, ['a', 'b']],
    [{ region: 'eu', tier: '2' }, ['b']],
    [{ region: 'EU' }, []],
    [{ constructor: 'x' }, []],
    [{ tier: '' }, []],
  ];
  for (const [selector, matching] of cases) {
    it(`${JSON.stringify(selector)} matches ${matching.join(', ') || 'nothing'}`, () => {
      const ledger = ledgerOf(...fleet);
      const listed = ledger.book.proxies({ selector, limit: 10 }, ledger.nowMs);
      expect(listed.proxies.map((proxy) => proxy.name)).toEqual(matching);
      if (matching.length === 0) expect(ledger.refused({ selector }).considered).toBe(0);
      else expect(matching).toContain(ledger.granted({ selector }).proxy.name);
    });
  }
});

describe('a refusal', () => {
  it('counts each considered proxy once, under its gravest reason', () => {
    const ledger = ledgerOf(
      entry('banned', { maxLeases: 1, egressIP: '192.0.2.1' }),
      entry('full', { maxLeases: 1, egressIP: '192.0.2.2' }),
      entry('sick', { healthy: false }),
      entry('unprobed', { healthy: null }),
      entry('cordoned', { leasable: false }),
      entry('draining', { draining: true }),
    );
    const first = ledger.granted({ target: 't' });
    ledger.report(first.leaseID, { result: 'banned' });
    ledger.granted({ target: 't', ttlSeconds: 50 });
    expect(ledger.acquire({ target: 't' })).toEqual({
      ok: false,
      code: 'no_match',
      noMatch: {
        considered: 4,
        atCapacity: 1,
        inCooldown: 1,
        unhealthy: 2,
        eligible: 0,
        retryAfterSeconds: 50,
      },
      withheld: 2,
    });
  });

  it('names no time when nothing frees by itself', () => {
    const ledger = ledgerOf(entry('sick', { healthy: false }));
    expect(ledger.refused()).not.toHaveProperty('retryAfterSeconds');
  });

  it('names the time at which both the cooldown and the slot are over', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const { leaseID } = ledger.granted({ target: 't', ttlSeconds: 60 });
    ledger.report(leaseID, { result: 'rate_limited', retryAfterSeconds: 10 });
    expect(ledger.refused({ target: 't' })).toMatchObject({ inCooldown: 1, retryAfterSeconds: 60 });
  });

  it('waits for as many leases to end as a lowered capacity asks for', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 3 }));
    for (const ttlSeconds of [30, 10, 20]) ledger.granted({ ttlSeconds });
    ledger.has(entry('a', { maxLeases: 1 }));
    expect(ledger.refused().retryAfterSeconds).toBe(30);
    ledger.advance(30);
    expect(ledger.acquire()).toMatchObject({ ok: true });
  });
});

describe('a silent agent', () => {
  it('takes its proxies out of the offer, as unhealthy, until it speaks again', () => {
    const ledger = ledgerOf(entry('a'));
    ledger.nowMs += 89_999;
    ledger.release(ledger.granted().leaseID);
    ledger.nowMs += 1;
    expect(ledger.refused()).toMatchObject({ considered: 1, unhealthy: 1 });
    expect(ledger.list().proxies[0]?.healthy).toBe(false);
    expect(ledger.book.stats(ledger.nowMs).proxies).toMatchObject({ stale: 1, healthy: 0 });
    ledger.heartbeat();
    expect(ledger.acquire()).toMatchObject({ ok: true });
  });

  it('does not take the proxies of other clusters with it', () => {
    const ledger = ledgerOf(entry('a'));
    ledger.advance(60);
    ledger.sync('d', { kind: 'full', upserts: [entry('a')] });
    ledger.advance(30);
    expect(ledger.granted().proxy.cluster).toBe('d');
  });
});

describe('a listing', () => {
  it('goes through all matches in pages, in a fixed order, while proxies come and go', () => {
    const ledger = new Ledger();
    ledger.sync('d', { kind: 'full', upserts: [entry('a')] });
    ledger.has(entry('c'), entry('b'), entry('a', { namespace: 'z' }), entry('x'));
    const seen: string[] = [];
    let after: ReturnType<Ledger['list']>['next'];
    do {
      const page = ledger.book.proxies({ selector: {}, limit: 2, after }, ledger.nowMs);
      seen.push(...page.proxies.map((p) => `${p.cluster}/${p.namespace}/${p.name}`));
      after = page.next;
      if (seen.length === 2) {
        expect(page.count).toBe(5);
        ledger.has(entry('x'), entry('a', { namespace: 'z' }));
      }
    } while (after !== undefined);
    expect(seen).toEqual(['c/crawl/b', 'c/crawl/c', 'c/crawl/x', 'c/z/a', 'd/crawl/a']);
  });

  it('filters by what is healthy now', () => {
    const ledger = ledgerOf(entry('a'), entry('b', { healthy: null }));
    const list = (healthy: boolean) =>
      ledger.book
        .proxies({ selector: {}, limit: 9, healthy }, ledger.nowMs)
        .proxies.map((proxy) => proxy.name);
    expect(list(true)).toEqual(['a']);
    expect(list(false)).toEqual(['b']);
    ledger.advance(90);
    expect(list(true)).toEqual([]);
    expect(list(false)).toEqual(['a', 'b']);
  });
});
