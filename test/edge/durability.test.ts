import {
  evictDurableObject,
  reset,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { crawl, entry, lease, sync, syncFull } from './requests.ts';

const ledger = () => env.LEDGER.getByName('ledger-0');

/** Counts of the tables, as a person with access to the storage would see them. */
function rows(table: string): Promise<number> {
  return runInDurableObject(ledger(), (_, state) => {
    const result = state.storage.sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`);
    return result.one().n;
  });
}

function rowsWritten(work: () => Promise<unknown>): Promise<number> {
  return runInDurableObject(ledger(), async (_, state) => {
    const before = totalChanges(state.storage.sql);
    await work();
    return totalChanges(state.storage.sql) - before;
  });
}

function totalChanges(sql: SqlStorage): number {
  return sql.exec<{ n: number }>('SELECT total_changes() AS n').one().n;
}

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  await reset();
  await syncFull(
    entry('a', { egressIP: '192.0.2.1', credentials: { username: 'u', password: 'p' } }),
  );
});

afterEach(() => {
  vi.useRealTimers();
});

describe('after the object was evicted', () => {
  it('leases, cooldowns, inventory and listings are what they were', async () => {
    const kept = await lease({ target: 'kept.example' });
    const released = await lease();
    await crawl('DELETE', `/v1/leases/${released.id}`);
    await crawl('POST', `/v1/leases/${kept.id}/report`, { result: 'banned' });
    await crawl('POST', `/v1/leases/${kept.id}/renew`, { ttlSeconds: 1_000 });
    const look = async () => ({
      lease: (await crawl('GET', `/v1/leases/${kept.id}`)).body,
      proxies: (await crawl('GET', '/v1/proxies')).body,
      stats: (await crawl('GET', '/v1/stats')).body,
      refused: (await lease({ target: 'kept.example' })).headers.get('retry-after'),
    });
    const before = await look();
    await evictDurableObject(ledger());
    expect(await look()).toEqual(before);
    expect(before.lease).toMatchObject({
      ttlSeconds: 1_000,
      proxy: { url: 'http://u:p@a.example:3128' },
    });
    expect(before.refused).toBe('300');
    expect(await crawl('GET', `/v1/leases/${released.id}`)).toMatchObject({ status: 404 });
  });

  it('tokens go on growing', async () => {
    const tokens: number[] = [];
    for (let round = 0; round < 3; round++) {
      tokens.push(Number((await lease()).body.token), Number((await lease()).body.token));
      await evictDurableObject(ledger());
    }
    expect(new Set(tokens).size).toBe(6);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  });

  it('an agent goes on with its session, and an older leader stays shut out', async () => {
    await sync({ term: 5, session: 's', seq: 1, kind: 'full', upserts: [entry('b')] });
    await evictDurableObject(ledger());
    const delta = { term: 5, session: 's', seq: 2, kind: 'delta', upserts: [entry('c')] };
    expect(await sync(delta)).toMatchObject({ status: 200 });
    const old = { term: 4, session: 'old', seq: 1, kind: 'full' };
    expect(await sync(old)).toMatchObject({ status: 409, body: { error: 'stale_term' } });
    expect((await crawl('GET', '/v1/proxies')).body.count).toBe(2);
  });

  it('`spread` goes on where it was', async () => {
    await syncFull(entry('a'), entry('b'), entry('c'));
    const used: unknown[] = [];
    for (let round = 0; round < 4; round++) {
      const { id, body } = await lease({ strategy: 'spread' });
      used.push(body.proxy);
      await crawl('DELETE', `/v1/leases/${id}`);
      await evictDurableObject(ledger());
    }
    expect(used).toMatchObject(['a', 'b', 'c', 'a'].map((name) => ({ name })));
  });

  it('a proxy that is gone is known to be gone', async () => {
    const { id } = await lease();
    await syncFull();
    await evictDurableObject(ledger());
    const renewed = await crawl('POST', `/v1/leases/${id}/renew`, {});
    expect(renewed).toMatchObject({ status: 410, body: { error: 'proxy_gone' } });
  });

  it('the migrations are not run again', async () => {
    const done = await rows('migrations');
    await evictDurableObject(ledger());
    await lease();
    expect(await rows('migrations')).toBe(done);
  });

  it('a session goes on that sent nothing but heartbeats since its last change', async () => {
    await sync({ term: 2, session: 's', seq: 1, kind: 'full', upserts: [entry('a')] });
    for (const seq of [2, 3, 4]) {
      await evictDurableObject(ledger());
      const heartbeat = { term: 2, session: 's', seq, kind: 'heartbeat', basis: 1 };
      expect(await sync(heartbeat)).toMatchObject({ status: 200, body: { acceptedSeq: seq } });
    }
  });
});

describe('the rows of the object', () => {
  it('are one for each thing that it knows, and go with the proxy', async () => {
    const { id } = await lease({ strategy: 'spread', target: 'shop.example' });
    await crawl('POST', `/v1/leases/${id}/report`, { result: 'rate_limited' });
    const counts: Record<string, number> = {};
    for (const table of ['agents', 'proxies', 'uses', 'leases', 'cooldowns', 'figures']) {
      counts[table] = await rows(table);
    }
    const one = { agents: 1, proxies: 1, uses: 1, leases: 1, cooldowns: 1, figures: 1 };
    expect(counts).toEqual(one);
    await syncFull();
    expect(await rows('uses')).toBe(0);
  });
});

describe('the price of a request', () => {
  it('is one row for an acquire, one for a release, none for what only looks', async () => {
    await lease();
    let id = '';
    const acquire = async () => {
      id = (await lease()).id;
    };
    expect(await rowsWritten(acquire)).toBe(1);
    expect(await rowsWritten(() => crawl('GET', `/v1/leases/${id}`))).toBe(0);
    expect(await rowsWritten(() => crawl('GET', '/v1/proxies'))).toBe(0);
    expect(await rowsWritten(() => lease({ selector: { no: 'where' } }))).toBe(0);
    expect(await rowsWritten(() => crawl('DELETE', `/v1/leases/${id}`))).toBe(1);
  });

  it('is nothing for a heartbeat', async () => {
    await sync({ term: 2, session: 's', seq: 1, kind: 'full', upserts: [entry('a')] });
    const heartbeat = { term: 2, session: 's', seq: 2, kind: 'heartbeat' };
    expect(await rowsWritten(() => sync(heartbeat))).toBe(0);
  });
});

describe('a commit that fails', () => {
  it('fails its own request alone, and leaves the book as storage has it', async () => {
    const kept = await lease();
    await runInDurableObject(ledger(), (_, state) => {
      state.storage.sql.exec(
        `CREATE TRIGGER refuse BEFORE INSERT ON leases BEGIN SELECT RAISE(ABORT, 'disk full'); END`,
      );
    });
    expect(await lease()).toMatchObject({ status: 500, body: { error: 'internal' } });
    await runInDurableObject(ledger(), (_, state) => {
      state.storage.sql.exec('DROP TRIGGER refuse');
    });
    expect((await crawl('GET', '/v1/stats')).body).toMatchObject({ leases: { active: 1 } });
    expect(await crawl('GET', `/v1/leases/${kept.id}`)).toMatchObject({ status: 200 });
    const next = await lease();
    expect(next.status).toBe(201);
    expect(Number(next.body.token)).toBeGreaterThan(Number(kept.body.token));
  });
});

describe('the alarm', () => {
  const alarmMs = () => runInDurableObject(ledger(), (_, state) => state.storage.getAlarm());
  const advance = (seconds: number) => vi.setSystemTime(Date.now() + seconds * 1000);

  it('is set when there is something to forget, and moved to an earlier time only', async () => {
    expect(await alarmMs()).toBeNull();
    const start = Date.now();
    await lease({ ttlSeconds: 600 });
    expect(await alarmMs()).toBe(start + 900_000);
    await lease({ ttlSeconds: 900 });
    expect(await alarmMs()).toBe(start + 900_000);
    await lease({ ttlSeconds: 60 });
    expect(await alarmMs()).toBe(start + 360_000);
  });

  it('deletes rows of forgotten leases and cooldowns, and rests when none is left', async () => {
    const { id } = await lease({ ttlSeconds: 60, target: 'shop.example' });
    await crawl('POST', `/v1/leases/${id}/report`, { result: 'banned' });
    advance(361);
    expect(await runDurableObjectAlarm(ledger())).toBe(true);
    expect(await rows('leases')).toBe(0);
    expect(await rows('cooldowns')).toBe(1);
    expect(await alarmMs()).not.toBeNull();
    advance(86_400);
    expect(await runDurableObjectAlarm(ledger())).toBe(true);
    expect(await rows('cooldowns')).toBe(0);
    expect(await alarmMs()).toBeNull();
  });

  it('does no harm when it comes too early or twice', async () => {
    const { id } = await lease();
    expect(await runDurableObjectAlarm(ledger())).toBe(true);
    await runDurableObjectAlarm(ledger());
    expect(await crawl('GET', `/v1/leases/${id}`)).toMatchObject({ status: 200 });
    expect(await alarmMs()).not.toBeNull();
  });

  it('is not needed for anything to end', async () => {
    const { id } = await lease({ ttlSeconds: 60 });
    advance(60);
    const renewed = await crawl('POST', `/v1/leases/${id}/renew`, {});
    expect(renewed).toMatchObject({ status: 410, body: { error: 'lease_expired' } });
    const report = { result: 'rate_limited', target: 'shop.example' };
    expect((await crawl('POST', `/v1/leases/${id}/report`, report)).status).toBe(204);
    advance(300);
    const late = await crawl('POST', `/v1/leases/${id}/report`, report);
    expect(late).toMatchObject({ status: 404, body: { error: 'unknown_lease' } });
  });

  it('comes again when a sweep has failed', async () => {
    await lease({ ttlSeconds: 60 });
    advance(361);
    await runInDurableObject(ledger(), (_, state) => {
      state.storage.sql.exec(
        `CREATE TRIGGER refuse BEFORE DELETE ON leases BEGIN SELECT RAISE(ABORT, 'disk full'); END`,
      );
    });
    await runDurableObjectAlarm(ledger());
    expect(await alarmMs()).toBe(Date.now() + 60_000);
    await runInDurableObject(ledger(), (_, state) => {
      state.storage.sql.exec('DROP TRIGGER refuse');
    });
    advance(60);
    await runDurableObjectAlarm(ledger());
    expect(await rows('leases')).toBe(0);
  });
});
