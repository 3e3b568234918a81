import { describe, expect, it } from 'vitest';
import { entry, ledgerOf } from './harness.ts';

const key = (body = 'body') => ({ idempotency: { key: 'key', body } });

describe('a request with an idempotency key', () => {
  it('gets the same lease again while that lives, as long as it is left', () => {
    const ledger = ledgerOf(entry('a'), entry('b'));
    const first = ledger.granted({ ttlSeconds: 60 }, key());
    ledger.advance(10);
    for (const restarts of [false, true]) {
      if (restarts) ledger.restart();
      const again = ledger.granted({ ttlSeconds: 60 }, key());
      expect(again).toEqual({ ...first, expiresInMs: 50_000 });
      expect(ledger.changes).toEqual([]);
    }
    expect(ledger.book.stats(ledger.nowMs).leases.active).toBe(1);
  });

  it('is refused when it asks for something else', () => {
    const ledger = ledgerOf(entry('a'));
    ledger.granted({}, key());
    const other = ledger.acquire({ ttlSeconds: 60 }, key('other'));
    expect(other).toEqual({ ok: false, code: 'idempotency_mismatch' });
    ledger.restart();
    expect(ledger.acquire({}, key('other'))).toMatchObject({ code: 'idempotency_mismatch' });
  });

  it('gets the lease also when no proxy would be free, or it is too long', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const { leaseID } = ledger.granted({}, key());
    expect(ledger.granted({ ttlSeconds: 10 ** 6 }, key()).leaseID).toBe(leaseID);
    expect(ledger.granted({ waitSeconds: 5 }, key()).leaseID).toBe(leaseID);
  });

  it('gets a new lease once the old one has ended', () => {
    const endings = {
      released: (id: string, ledger: ReturnType<typeof ledgerOf>) => ledger.release(id),
      expired: (_: string, ledger: ReturnType<typeof ledgerOf>) => ledger.advance(60),
      gone: (_: string, ledger: ReturnType<typeof ledgerOf>) => {
        ledger.has(entry('a', { instance: 'a@2' }));
      },
    };
    for (const end of Object.values(endings)) {
      const ledger = ledgerOf(entry('a'));
      const first = ledger.granted({ ttlSeconds: 60 }, key());
      end(first.leaseID, ledger);
      const second = ledger.granted({ ttlSeconds: 60 }, key('other'));
      expect(second.token).toBeGreaterThan(first.token);
      expect(second.leaseID).not.toBe(first.leaseID);
    }
  });

  it('waits with the request that it repeats, and both get one lease', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const holder = ledger.granted();
    ledger.queue('one', {}, key());
    ledger.queue('two', {}, key());
    expect(ledger.book.stats(ledger.nowMs).waiting).toBe(1);
    expect(ledger.acquire({ waitSeconds: 9 }, key('other'))).toMatchObject({
      code: 'idempotency_mismatch',
    });
    ledger.release(holder.leaseID);
    const lease = { ok: true, lease: { leaseID: 'two' } };
    expect(ledger.answers.get('one')).toMatchObject(lease);
    expect(ledger.answers.get('two')).toMatchObject(lease);
    expect(ledger.book.stats(ledger.nowMs).leases.active).toBe(1);
  });

  it('keeps its place in the queue when the first attempt hangs up', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const holder = ledger.granted();
    ledger.queue('one', {}, key());
    ledger.queue('two', {}, key());
    ledger.release('one');
    expect(ledger.answers.get('one')).toMatchObject({ code: 'cancelled' });
    ledger.release(holder.leaseID);
    expect(ledger.answers.get('two')).toMatchObject({ ok: true });
  });
});

describe('a lease that its first crawler has abandoned', () => {
  it('is given back', () => {
    const ledger = ledgerOf(entry('a'));
    const { leaseID } = ledger.granted({}, key());
    ledger.release(leaseID, true);
    expect(ledger.get(leaseID)).toMatchObject({ ok: false });
  });

  it('stays with those who repeated the request', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const { leaseID } = ledger.granted({}, key());
    ledger.granted({}, key());
    ledger.release(leaseID, true);
    expect(ledger.get(leaseID)).toMatchObject({ ok: true });
    ledger.release(leaseID);
    expect(ledger.get(leaseID)).toMatchObject({ ok: false });
  });

  it('stays with those who waited with it', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const holder = ledger.granted();
    ledger.queue('one', {}, key());
    ledger.queue('two', {}, key());
    ledger.release(holder.leaseID);
    ledger.release('two', true);
    expect(ledger.get('two')).toMatchObject({ ok: true });
  });
});

describe('a request that is made again under its own id', () => {
  it('gets the lease that it has', () => {
    const ledger = ledgerOf(entry('a'));
    const first = ledger.granted({}, { leaseID: 'mine' });
    expect(ledger.granted({}, { leaseID: 'mine' })).toEqual(first);
    expect(ledger.book.stats(ledger.nowMs).leases.active).toBe(1);
  });

  it('gets no other one when that has ended', () => {
    const ledger = ledgerOf(entry('a'));
    ledger.granted({ ttlSeconds: 1 }, { leaseID: 'mine' });
    ledger.advance(1);
    expect(ledger.acquire({}, { leaseID: 'mine' })).toMatchObject({ code: 'cancelled' });
  });

  it('waits in its place', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const holder = ledger.granted();
    ledger.queue('mine');
    ledger.queue('mine');
    ledger.release(holder.leaseID);
    expect(ledger.answers.get('mine')).toMatchObject({ ok: true });
    expect(ledger.book.stats(ledger.nowMs)).toMatchObject({ waiting: 0, leases: { active: 1 } });
  });
});

describe('a shard that could not grant a request with a key', () => {
  it('says so from then on, after a restart too, until it is asked as one of all', () => {
    const ledger = ledgerOf(entry('a', { maxLeases: 1 }));
    const holder = ledger.granted();
    expect(ledger.acquire({}, { ...key(), place: 'home' })).toMatchObject({ code: 'no_match' });
    ledger.release(holder.leaseID);
    for (const restarts of [false, true]) {
      if (restarts) ledger.restart();
      const again = ledger.acquire({}, { ...key(), place: 'home' });
      expect(again).toEqual({ ok: false, code: 'passed_on' });
    }
    const { leaseID } = ledger.granted({}, { ...key(), place: 'further' });
    expect(ledger.granted({}, { ...key(), place: 'home' }).leaseID).toBe(leaseID);
    ledger.release(leaseID);
    // Another shard may have granted at the same time: only looking there is certain.
    const later = ledger.acquire({}, { ...key(), place: 'home' });
    expect(later).toEqual({ ok: false, code: 'passed_on' });
  });

  it('forgets it when no lease can live that long', () => {
    const ledger = ledgerOf();
    ledger.acquire({}, { ...key(), place: 'home' });
    ledger.advance(3600);
    ledger.sweep();
    expect(ledger.store.snapshot().passed).toEqual([]);
  });

  it('is told so by a request that begins elsewhere, and has what it granted before', () => {
    const ledger = ledgerOf(entry('a'));
    const note = () => ledger.acquire({}, { ...key(), place: 'note' });
    expect(note()).toEqual({ ok: false, code: 'noted' });
    expect(note()).toEqual({ ok: false, code: 'passed_on' });
    const lease = ledger.granted({}, { ...key(), place: 'further' });
    expect(note()).toEqual({ ok: true, lease });
  });

  it('shows what it has to those who look', () => {
    const ledger = ledgerOf(entry('a'));
    const find = (body: string) =>
      ledger.book.find({ ...key(body), client: 'tester', request: {} }, ledger.nowMs);
    expect(find('body')).toEqual({});
    const lease = ledger.granted({}, key());
    expect(find('body')).toEqual({ lease });
    expect(find('other')).toEqual({ mismatch: true });
  });
});
