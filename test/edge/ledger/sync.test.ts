import { describe, expect, it } from 'vitest';
import { entry, Ledger } from './harness.ts';

const listed = (ledger: Ledger) => ledger.list().proxies.map((proxy) => proxy.name);

describe('a session', () => {
  it('must begin with a full sync', () => {
    const ledger = new Ledger();
    for (const kind of ['delta', 'heartbeat'] as const) {
      expect(ledger.sync('c', { kind, seq: 1 })).toMatchObject({ code: 'resync_required' });
    }
    expect(ledger.changes).toEqual([]);
    expect(ledger.has(entry('a'))).toMatchObject({ ok: true, response: { acceptedSeq: 1 } });
    const other = ledger.sync('c', { kind: 'delta', session: 's2', seq: 2 });
    expect(other).toMatchObject({ code: 'resync_required' });
  });

  it('counts up by one: a repetition is acknowledged without effect, a gap is refused', () => {
    const ledger = new Ledger();
    ledger.has(entry('a'));
    const delta = { kind: 'delta', seq: 2 } as const;
    expect(ledger.sync('c', { ...delta, upserts: [entry('b')] })).toMatchObject({ ok: true });
    const repeated = ledger.sync('c', { ...delta, upserts: [entry('x')], removes: ['uid-a'] });
    expect(repeated).toMatchObject({ ok: true, response: { acceptedSeq: 2 } });
    expect(ledger.changes).toEqual([]);
    expect(ledger.sync('c', { kind: 'delta', seq: 4 })).toMatchObject({ code: 'resync_required' });
    expect(listed(ledger)).toEqual(['a', 'b']);
    expect(ledger.sync('c', { kind: 'delta', seq: 3 })).toMatchObject({ ok: true });
  });

  it('goes on after a restart of the edge', () => {
    const ledger = new Ledger();
    ledger.has(entry('a'));
    ledger.sync('c', { kind: 'delta', upserts: [entry('b')] });
    ledger.restart();
    expect(ledger.sync('c', { kind: 'delta', seq: 3 })).toMatchObject({ ok: true });
    expect(listed(ledger)).toEqual(['a', 'b']);
  });

  it.each(['heartbeat', 'delta'] as const)(
    'goes on with a %s after a restart that has forgotten heartbeats, on the same basis',
    (kind) => {
      const ledger = new Ledger();
      ledger.has(entry('a'));
      ledger.sync('c', { kind: 'delta', basis: 1, upserts: [entry('b')] });
      for (let beat = 0; beat < 3; beat++) ledger.heartbeat();
      ledger.restart();
      expect(ledger.sync('c', { kind, seq: 6, basis: 2 })).toMatchObject({
        response: { acceptedSeq: 6 },
      });
      expect(ledger.sync('c', { kind, seq: 7, basis: kind === 'delta' ? 6 : 2 }).ok).toBe(true);
      expect(listed(ledger)).toEqual(['a', 'b']);
    },
  );

  it('keeps its basis through heartbeats that are stored', () => {
    const ledger = new Ledger();
    ledger.has(entry('a'));
    ledger.advance(60);
    ledger.heartbeat();
    expect(ledger.changes).toHaveLength(1);
    ledger.heartbeat();
    ledger.restart();
    expect(ledger.sync('c', { kind: 'heartbeat', seq: 4, basis: 1 }).ok).toBe(true);
  });

  it.each([
    ['without a basis', {}],
    ['on another basis', { basis: 1 }],
  ])('asks for a full sync after a gap %s', (_, basis) => {
    const ledger = new Ledger();
    ledger.has(entry('a'));
    ledger.sync('c', { kind: 'delta', basis: 1, upserts: [entry('b')] });
    ledger.heartbeat();
    ledger.restart();
    const next = { kind: 'heartbeat', seq: 4, ...basis } as const;
    expect(ledger.sync('c', next)).toMatchObject({ code: 'resync_required' });
    const full = { kind: 'full', session: 's2', seq: 1 } as const;
    const upserts = [entry('a'), entry('b')];
    expect(ledger.sync('c', { ...full, upserts })).toMatchObject({ ok: true });
    expect(ledger.changes.map((change) => change.kind)).toEqual(['put-agent']);
  });
});

describe('a term', () => {
  it('below the last one seen is refused with that one, whatever else the sync is', () => {
    const ledger = new Ledger();
    ledger.sync('c', { kind: 'full', term: 7, upserts: [entry('a')] });
    for (const kind of ['full', 'delta', 'heartbeat'] as const) {
      const stale = ledger.sync('c', { kind, term: 6, session: 's1', seq: 2 });
      expect(stale).toEqual({ ok: false, code: 'stale_term', term: 7 });
    }
    expect(listed(ledger)).toEqual(['a']);
    expect(ledger.sync('d', { kind: 'full', term: 1 })).toMatchObject({ ok: true });
  });

  const first = {
    'a delta': { kind: 'delta', term: 8, session: 'new', seq: 1 },
    'a heartbeat': { kind: 'heartbeat', term: 8, session: 'new', seq: 1 },
    'the first of two pages': {
      kind: 'full',
      term: 8,
      session: 'new',
      seq: 1,
      page: { index: 0, of: 2 },
    },
  } as const;
  for (const [name, request] of Object.entries(first)) {
    it(`shuts the old leader out from ${name} of the new one on, also over a restart`, () => {
      const ledger = new Ledger();
      ledger.sync('c', { kind: 'full', term: 7, upserts: [entry('a')] });
      ledger.sync('c', request);
      ledger.restart();
      const stale = ledger.sync('c', { kind: 'delta', term: 7, seq: 2 });
      expect(stale).toEqual({ ok: false, code: 'stale_term', term: 8 });
      expect(listed(ledger)).toEqual(['a']);
    });
  }
});

describe('pages of a full sync', () => {
  const page = (index: number, name: string, seq = index + 1, session = 's1') =>
    ({ kind: 'full', session, seq, page: { index, of: 3 }, upserts: [entry(name)] }) as const;
  const send = (ledger: Ledger, ...args: Parameters<typeof page>) => {
    const { upserts, ...request } = page(...args);
    return ledger.sync('c', { ...request, upserts: [...upserts] });
  };

  it('take effect together, with the last', () => {
    const ledger = new Ledger();
    ledger.sync('c', { kind: 'full', session: 's0', upserts: [entry('old')] });
    expect(send(ledger, 0, 'a')).toMatchObject({ ok: true, response: { acceptedSeq: 1 } });
    expect(send(ledger, 1, 'b')).toMatchObject({ ok: true, response: { acceptedSeq: 2 } });
    expect(listed(ledger)).toEqual(['old']);
    expect(ledger.changes).toEqual([]);
    expect(send(ledger, 2, 'c')).toMatchObject({ ok: true, response: { acceptedSeq: 3 } });
    expect(listed(ledger)).toEqual(['a', 'b', 'c']);
    ledger.restart();
    expect(listed(ledger)).toEqual(['a', 'b', 'c']);
    expect(ledger.sync('c', { kind: 'delta', seq: 4 })).toMatchObject({ ok: true });
  });

  it('may be repeated one by one', () => {
    const ledger = new Ledger();
    for (const [index, name] of ['a', 'b', 'c'].entries()) {
      expect(send(ledger, index, name)).toMatchObject({ ok: true });
      expect(send(ledger, index, name)).toMatchObject({ ok: true });
    }
    expect(listed(ledger)).toEqual(['a', 'b', 'c']);
  });

  it('must come in order, without a gap and from one session', () => {
    const wrong: [number, string, number, string][] = [
      [2, 'c', 3, 's1'],
      [1, 'b', 1, 's1'],
      [1, 'b', 2, 's2'],
    ];
    for (const args of wrong) {
      const ledger = new Ledger();
      send(ledger, 0, 'a');
      expect(send(ledger, ...args)).toMatchObject({ code: 'resync_required' });
      expect(listed(ledger)).toEqual([]);
    }
  });

  it('are forgotten by a restart, and begin again', () => {
    const ledger = new Ledger();
    send(ledger, 0, 'a');
    ledger.restart();
    expect(send(ledger, 1, 'b')).toMatchObject({ code: 'resync_required' });
    for (const [index, name] of ['a', 'b', 'c'].entries()) {
      expect(send(ledger, index, name, index + 1, 's2')).toMatchObject({ ok: true });
    }
    expect(listed(ledger)).toEqual(['a', 'b', 'c']);
  });

  it('may be begun again before they are complete', () => {
    const ledger = new Ledger();
    send(ledger, 0, 'x', 1);
    send(ledger, 1, 'y', 2);
    for (const [index, name] of ['a', 'b', 'c'].entries()) {
      expect(send(ledger, index, name, index + 3)).toMatchObject({ ok: true });
    }
    expect(listed(ledger)).toEqual(['a', 'b', 'c']);
  });
});

describe('what a sync writes', () => {
  it('is the rows of entries that say something new, and where the agent stands', () => {
    const ledger = new Ledger();
    const kinds = () => ledger.changes.map((change) => change.kind);
    ledger.has(entry('a'), entry('b'));
    expect(kinds()).toEqual(['put-agent', 'put-proxy', 'put-proxy']);
    ledger.has(entry('a'), entry('b', { latencyMillis: 3 }));
    expect(kinds()).toEqual(['put-agent', 'put-proxy']);
    ledger.has(entry('b', { latencyMillis: 3 }));
    expect(kinds()).toEqual(['put-agent', 'delete-proxy']);
  });

  it('is for a heartbeat nothing, but the time once it is a third of being stale behind', () => {
    const ledger = new Ledger();
    ledger.has(entry('a'));
    const written: number[] = [];
    for (let beat = 0; beat < 8; beat++) {
      ledger.advance(15);
      ledger.heartbeat();
      written.push(ledger.changes.length);
    }
    expect(written).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
    ledger.advance(15);
    ledger.heartbeat();
    ledger.restart();
    expect(ledger.acquire()).toMatchObject({ ok: true });
  });

  it('is the last one of two entries with one uid', () => {
    const ledger = new Ledger();
    ledger.has(entry('a'), entry('a', { instance: 'a@2', maxLeases: 7 }));
    expect(ledger.list()).toMatchObject({ count: 1, proxies: [{ maxLeases: 7 }] });
  });
});

describe('a ledger that is full', () => {
  it('refuses more proxies without touching those that it has', () => {
    const ledger = new Ledger();
    const many = Array.from({ length: 30_000 }, (_, index) => entry(`p${index}`));
    expect(ledger.has(...many)).toMatchObject({ ok: true });
    const refusal = { ok: false, code: 'inventory_full' };
    expect(ledger.sync('c', { kind: 'delta', upserts: [entry('more')] })).toMatchObject(refusal);
    expect(ledger.sync('d', { kind: 'full', upserts: [entry('x')] })).toMatchObject(refusal);
    expect(ledger.changes).toEqual([]);
    expect(ledger.has(...many)).toMatchObject({ ok: true });
    expect(ledger.list().count).toBe(30_000);
  });
});

describe('entries with much in them', () => {
  const heavy = (name: string) => {
    const attributes = Array.from({ length: 32 }, (_, at) => [`k${at}`, 'v'.repeat(60)]);
    return entry(name, { attributes: Object.fromEntries(attributes) });
  };

  it('fill a ledger before their number does, and what is there stays', () => {
    const many = Array.from({ length: 11_000 }, (_, index) => heavy(`p${index}`));
    const ledger = new Ledger();
    expect(ledger.has(...many)).toMatchObject({ ok: true });
    const more = Array.from({ length: 2_000 }, (_, index) => heavy(`q${index}`));
    const refused = ledger.sync('c', { kind: 'delta', upserts: more });
    expect(refused).toMatchObject({ ok: false, code: 'inventory_full' });
    expect(ledger.list().count).toBe(11_000);
    expect(ledger.sync('c', { kind: 'delta', upserts: [entry('p0')] })).toMatchObject({ ok: true });
    expect(ledger.has(entry('p0'))).toMatchObject({ ok: true });
    expect(ledger.sync('c', { kind: 'delta', upserts: more })).toMatchObject({ ok: true });
  });
});

describe('the answer to a sync', () => {
  it('tells the active leases, the reports since the last answer and the outcomes', () => {
    const ledger = new Ledger();
    ledger.has(entry('a', { maxLeases: 3 }), entry('b', { healthy: false }));
    const lease = ledger.granted({ target: 't' });
    ledger.granted({ target: 't' });
    ledger.report(lease.leaseID, { result: 'banned' });
    ledger.report(lease.leaseID, { result: 'rate_limited', target: 'u' });
    ledger.report(lease.leaseID, { result: 'ok' });
    ledger.refused({ target: 't' });
    ledger.acquire({ ttlSeconds: 10 ** 6 });
    const answer = {
      acceptedSeq: 2,
      serverTime: ledger.nowMs,
      leases: { 'uid-a': 2 },
      reports: { 'uid-a': { rate_limited: 1, banned: 1, targets: ['t', 'u'] } },
      counters: { granted: 2, no_match: 1, ttl_too_long: 1 },
    };
    expect(ledger.heartbeat()).toEqual({ ok: true, beat: true, response: answer });
    const repeated = ledger.sync('c', { kind: 'heartbeat', seq: 2 });
    expect(repeated).toEqual({ ok: true, beat: true, response: answer });
    expect(ledger.heartbeat()).toMatchObject({ response: { acceptedSeq: 3, reports: {} } });
  });

  it('tells an agent of its own cluster alone, and names a bounded number of targets', () => {
    const ledger = new Ledger();
    ledger.has(entry('a'));
    ledger.sync('d', { kind: 'full', upserts: [entry('z', { healthy: false })] });
    const { leaseID } = ledger.granted();
    for (let index = 0; index < 30; index++) {
      ledger.report(leaseID, { result: 'banned', target: `t${index}` });
    }
    expect(ledger.sync('d', { kind: 'heartbeat' })).toMatchObject({
      response: { leases: {}, reports: {} },
    });
    const own = ledger.heartbeat();
    const reports = own.ok ? own.response.reports['uid-a'] : undefined;
    expect(reports?.banned).toBe(30);
    expect(reports?.targets).toHaveLength(20);
  });
});
