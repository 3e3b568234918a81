import { describe, expect, it } from 'vitest';
import { entry, type Ledger, ledgerOf } from './harness.ts';

/** A ledger whose one proxy is taken until `ttlSeconds` have passed. */
function busy(ttlSeconds = 20) {
  const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
  return { ledger, holder: ledger.granted({ ttlSeconds }).leaseID };
}

const granted = { ok: true, lease: { proxy: { name: 'a' } } };

describe('a request that waits', () => {
  it('is not asked to when there is a proxy', () => {
    expect(ledgerOf(entry('a')).acquire({ waitSeconds: 30 })).toMatchObject(granted);
  });

  it('gets what is released', () => {
    const { ledger, holder } = busy();
    ledger.queue('w');
    expect(ledger.answers.size).toBe(0);
    ledger.release(holder);
    expect(ledger.answers.get('w')).toMatchObject({ ok: true, lease: { leaseID: 'w' } });
    expect(ledger.get('w')).toMatchObject({ ok: true });
  });

  it('gets what expires, when the time has come', () => {
    const { ledger } = busy(20);
    ledger.queue('w');
    expect(ledger.book.nextTickMs).toBe(ledger.nowMs + 20_000);
    ledger.nowMs += 19_999;
    ledger.tick();
    expect(ledger.answers.size).toBe(0);
    ledger.nowMs += 1;
    ledger.tick();
    expect(ledger.answers.get('w')).toMatchObject(granted);
    expect(ledger.book.nextTickMs).toBeUndefined();
  });

  it('gets what a cooldown sets free', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted({ target: 't' });
    ledger.report(leaseID, { result: 'rate_limited', retryAfterSeconds: 7 });
    ledger.queue('w', { target: 't' });
    expect(ledger.book.nextTickMs).toBe(ledger.nowMs + 7_000);
    ledger.advance(7);
    ledger.tick();
    expect(ledger.answers.get('w')).toMatchObject(granted);
  });

  const changes: [string, (ledger: Ledger) => void][] = [
    ['is new', (ledger) => ledger.has(entry('x'), entry('a', { maxLeases: 1 }))],
    ['takes more leases', (ledger) => ledger.has(entry('a', { maxLeases: 2 }))],
    ['stands for another machine', (ledger) => ledger.has(entry('a', { instance: 'a@2' }))],
  ];
  for (const [what, change] of changes) {
    it(`gets a proxy that ${what}`, () => {
      const { ledger } = busy();
      ledger.queue('w');
      change(ledger);
      expect(ledger.answers.get('w')).toMatchObject({ ok: true });
    });
  }

  const hindrances = [
    { healthy: false },
    { leasable: false },
    { draining: true },
    { attributes: { region: 'us' } },
  ];
  for (const hindrance of hindrances) {
    it(`gets a proxy that was ${JSON.stringify(hindrance)} and is no more`, () => {
      const ledger = ledgerOf(entry('a', hindrance));
      ledger.queue('w', { selector: { region: 'eu' } });
      ledger.has(entry('a', { attributes: { region: 'eu' } }));
      expect(ledger.answers.get('w')).toMatchObject(granted);
    });
  }

  it('gets the proxies of a cluster whose agent speaks again', () => {
    const ledger = ledgerOf(entry('a'));
    ledger.advance(90);
    ledger.queue('w');
    ledger.heartbeat();
    expect(ledger.answers.get('w')).toMatchObject(granted);
  });

  it('is refused with the counts of that moment when its time is over', () => {
    const { ledger } = busy(300);
    ledger.queue('w', { waitSeconds: 5 });
    ledger.nowMs += 4_999;
    ledger.tick();
    expect(ledger.answers.size).toBe(0);
    ledger.nowMs += 1;
    ledger.tick();
    expect(ledger.answers.get('w')).toMatchObject({
      code: 'no_match',
      noMatch: { considered: 1, atCapacity: 1, retryAfterSeconds: 295 },
    });
    expect(ledger.book.nextTickMs).toBeUndefined();
    expect(ledger.book.stats(ledger.nowMs)).toMatchObject({ waiting: 0 });
  });

  it('gives up its place when it is released, and takes nothing with it', () => {
    const { ledger, holder } = busy();
    ledger.queue('w');
    ledger.release('w');
    expect(ledger.answers.get('w')).toEqual({ ok: false, code: 'cancelled' });
    ledger.release(holder);
    expect(ledger.book.stats(ledger.nowMs)).toMatchObject({ waiting: 0, leases: { active: 0 } });
  });
});

describe('the queue', () => {
  it('serves those who came first first', () => {
    const { ledger, holder } = busy();
    for (const id of ['first', 'second', 'third']) ledger.queue(id);
    const served: string[] = [];
    let next: string | undefined = holder;
    while (next !== undefined) {
      ledger.answers.clear();
      ledger.release(next);
      [next] = ledger.answers.keys();
      if (next !== undefined) served.push(next);
    }
    expect(served).toEqual(['first', 'second', 'third']);
  });

  it('passes over those whom a proxy does not suit, and keeps their place', () => {
    const ledger = ledgerOf(
      entry('eu', { maxLeases: 1, attributes: { region: 'eu' } }),
      entry('us', { maxLeases: 1, attributes: { region: 'us' } }),
    );
    const [eu, us] = ['eu', 'us'].map((region) => ledger.granted({ selector: { region } }));
    ledger.queue('wants-us', { selector: { region: 'us' } });
    ledger.queue('wants-any');
    ledger.release(eu?.leaseID ?? '');
    expect([...ledger.answers.keys()]).toEqual(['wants-any']);
    ledger.release(us?.leaseID ?? '');
    expect([...ledger.answers.keys()]).toEqual(['wants-any', 'wants-us']);
  });

  it('gives the best proxy to the first when several become free at once', () => {
    const ledger = ledgerOf();
    for (const id of ['first', 'second', 'third']) ledger.queue(id);
    const fast = entry('fast', { maxLeases: 1, latencyMillis: 5 });
    ledger.has(entry('slow', { maxLeases: 1, latencyMillis: 50 }), fast);
    const names = [...ledger.answers].map(([id, answer]) => [
      id,
      answer.ok && answer.lease.proxy.name,
    ]);
    expect(names).toEqual([
      ['first', 'fast'],
      ['second', 'slow'],
    ]);
  });

  it('gives nobody what an earlier one needs when several become free at once', () => {
    const ledger = ledgerOf();
    ledger.queue('needs-fast', { selector: { kind: 'fast' } });
    ledger.queue('takes-any');
    const one = { maxLeases: 1 };
    ledger.has(
      entry('a-slow', { ...one, latencyMillis: 90 }),
      entry('b-fast', { ...one, latencyMillis: 1, attributes: { kind: 'fast' } }),
    );
    expect(ledger.answers.get('needs-fast')).toMatchObject({ ok: true });
    expect(ledger.answers.get('takes-any')).toMatchObject({ lease: { proxy: { name: 'a-slow' } } });
  });

  it('is not overtaken by who comes later', () => {
    const { ledger, holder } = busy();
    ledger.queue('w');
    ledger.release(holder);
    expect(ledger.refused()).toMatchObject({ atCapacity: 1 });
  });

  it('holds a bounded number of requests', () => {
    const { ledger } = busy();
    for (let at = 0; at < 1_000; at++) ledger.queue(`w${at}`);
    expect(ledger.acquire({ waitSeconds: 1 })).toEqual({
      ok: false,
      code: 'queue_full',
      retryAfterSeconds: 1,
    });
    ledger.release('w500');
    ledger.queue('another');
  });

  it('lets a client with all its leases wait for one of them to end', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }), entry('b', { maxLeases: 1 }));
    const client = { name: 'modest', leasesMax: 1 };
    const [one, other] = [ledger.granted(), ledger.granted()];
    ledger.queue('w1', {}, { client });
    ledger.queue('w2', {}, { client });
    ledger.release(one.leaseID);
    ledger.release(other.leaseID);
    expect([...ledger.answers.keys()]).toEqual(['w1']);
    ledger.release('w1');
    expect([...ledger.answers.keys()]).toEqual(['w1', 'w2']);
  });

  it('outlives a book that is built again', () => {
    const { ledger, holder } = busy();
    ledger.queue('w');
    ledger.rebuild();
    expect(ledger.book.stats(ledger.nowMs)).toMatchObject({ waiting: 1 });
    ledger.release(holder);
    expect(ledger.answers.get('w')).toMatchObject(granted);
  });

  it('is served when the lease that was in the way could not be written', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const before = ledger.store.copy();
    ledger.granted();
    ledger.queue('w');
    ledger.store.restore(before);
    ledger.rebuild();
    expect(ledger.book.nextTickMs).toBeLessThanOrEqual(ledger.nowMs);
    ledger.tick();
    expect(ledger.answers.get('w')).toMatchObject(granted);
  });
});
