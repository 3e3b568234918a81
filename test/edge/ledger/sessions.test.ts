import { describe, expect, it } from 'vitest';
import { entry, type Ledger, ledgerOf } from './harness.ts';

const SESSION = { sessionKey: 'visitor' };
const nameOf = (ledger: Ledger, request = {}, extras = {}) =>
  ledger.granted({ ...SESSION, ...request }, extras).proxy.name;

/** Binds the session to `b`, though `a` is preferred. */
function bound(): Ledger {
  const ledger = ledgerOf(
    entry('a', { leasable: false, latencyMillis: 1 }),
    entry('b', { latencyMillis: 9 }),
  );
  ledger.release(ledger.granted(SESSION).leaseID);
  ledger.has(entry('a', { latencyMillis: 1 }), entry('b', { latencyMillis: 9 }));
  return ledger;
}

describe('a session', () => {
  it('gets the same proxy again, after a restart too', () => {
    const ledger = bound();
    expect(ledger.granted().proxy.name).toBe('a');
    for (const restarts of [false, true]) {
      if (restarts) ledger.restart();
      const { leaseID, proxy } = ledger.granted(SESSION);
      expect(proxy.name).toBe('b');
      ledger.release(leaseID);
    }
  });

  it('writes one row more than another lease, the first time', () => {
    const ledger = ledgerOf(entry('a'));
    ledger.granted(SESSION);
    expect(ledger.changes.map(({ kind }) => kind)).toEqual(['put-lease', 'put-session']);
    ledger.granted(SESSION);
    expect(ledger.changes.map(({ kind }) => kind)).toEqual(['put-lease']);
  });

  it('gets another proxy when its own cannot be had, which then sticks', () => {
    const ledger = bound();
    ledger.has(entry('a', { latencyMillis: 1 }), entry('b', { latencyMillis: 9, healthy: false }));
    expect(nameOf(ledger)).toBe('a');
    ledger.has(entry('a', { latencyMillis: 10 }), entry('b', { latencyMillis: 9 }));
    expect(nameOf(ledger)).toBe('a');
  });

  it('gets what it asks for, bound or not', () => {
    const ledger = ledgerOf(
      entry('a', { attributes: { region: 'eu' } }),
      entry('b', { attributes: { region: 'us' } }),
    );
    expect(nameOf(ledger, { selector: { region: 'eu' } })).toBe('a');
    expect(nameOf(ledger, { selector: { region: 'us' } })).toBe('b');
    expect(nameOf(ledger)).toBe('b');
  });

  it('avoids its proxy for a target that the proxy rests for', () => {
    const ledger = bound();
    const { leaseID } = ledger.granted({ ...SESSION, target: 't' });
    ledger.report(leaseID, { result: 'banned' });
    expect(nameOf(ledger, { target: 't' })).toBe('a');
  });

  it('is none of another client', () => {
    const ledger = bound();
    expect(nameOf(ledger, {}, { client: { name: 'other' } })).toBe('a');
  });

  it('is forgotten with its proxy', () => {
    const ledger = bound();
    ledger.has(entry('a'));
    expect(ledger.store.snapshot().sessions).toEqual([]);
    expect(nameOf(ledger)).toBe('a');
  });

  it('in the queue gets its own proxy when that becomes free as well', () => {
    const ledger = bound();
    const all = ['a', 'a', 'b', 'b'].map(() => ledger.granted());
    ledger.queue('w', SESSION);
    ledger.has(entry('a', { maxLeases: 9 }), entry('b', { maxLeases: 9, latencyMillis: 9 }));
    expect(all).toHaveLength(4);
    expect(ledger.answers.get('w')).toMatchObject({ lease: { proxy: { name: 'b' } } });
  });

  it('that went on to another shard is looked for there', () => {
    const ledger = bound();
    const find = () =>
      ledger.book.find({ client: 'tester', request: SESSION }, ledger.nowMs).boundToken;
    expect(find()).toBeGreaterThan(0);
    ledger.has();
    expect(ledger.acquire(SESSION, { place: 'home' })).toMatchObject({ code: 'no_match' });
    ledger.has(entry('a'));
    ledger.restart();
    expect(ledger.acquire(SESSION, { place: 'home' })).toMatchObject({ code: 'passed_on' });
    expect(find()).toBeUndefined();
    expect(nameOf(ledger, {}, { place: 'further' })).toBe('a');
    expect(nameOf(ledger, {}, { place: 'home' })).toBe('a');
  });
});
