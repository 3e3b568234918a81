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
      // Without the clients' counts, which begin again.
      stats: { ...(await crawl('GET', '/v1/stats')).body, clients: [] },
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
    const { id } = await lease({ sessionKey: 'visitor', target: 'shop.example' });
    await crawl('POST', `/v1/leases/${id}/report`, { result: 'rate_limited' });
    const counts: Record<string, number> = {};
    for (const table of ['agents', 'proxies', 'slots', 'cooldowns', 'sessions']) {
      counts[table] = await rows(table);
    }
    expect(counts).toEqual({ agents: 1, proxies: 1, slots: 1, cooldowns: 1, sessions: 1 });
    await crawl('DELETE', `/v1/leases/${id}`);
    expect(await rows('slots')).toBe(1);
    await syncFull();
    for (const table of ['proxies', 'slots', 'sessions']) expect(await rows(table)).toBe(0);
  });

  it('of leases are as many as were live at once, however many there were', async () => {
    for (let round = 0; round < 5; round++) {
      const [one, other] = [await lease(), await lease()];
      await crawl('DELETE', `/v1/leases/${one.id}`);
      await crawl('DELETE', `/v1/leases/${other.id}`);
      if (round === 2) await evictDurableObject(ledger());
    }
    expect(await rows('slots')).toBe(2);
  });
});

describe('the price of a request', () => {
  it('is one row for an acquire, one for a release, none for what only looks', async () => {
    let id = '';
    for (const wish of [{}, { strategy: 'spread' }, { target: 'shop.example' }]) {
      const acquire = async () => {
        id = (await lease(wish)).id;
      };
      expect(await rowsWritten(acquire)).toBe(1);
    }
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
        `CREATE TRIGGER refuse BEFORE INSERT ON slots BEGIN SELECT RAISE(ABORT, 'disk full'); END`,
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

  const ban = async (target: string) => {
    const { id } = await lease({ target });
    await crawl('POST', `/v1/leases/${id}/report`, { result: 'banned' });
  };

  it('is not needed by leases, whose rows are written over', async () => {
    await lease({ ttlSeconds: 60 });
    expect(await alarmMs()).toBeNull();
  });

  it('is set when there is something to forget, and moved to an earlier time only', async () => {
    const forgetMs = Date.now() + 300_000 + 86_400_000;
    await ban('shop.example');
    expect(await alarmMs()).toBe(forgetMs);
    await ban('other.example');
    expect(await alarmMs()).toBe(forgetMs);
    const { id } = await lease({ ttlSeconds: 60 });
    const soonMs = Date.now() + 60_000 + 300_000;
    await syncFull();
    expect(await alarmMs()).toBe(soonMs);
    expect(await crawl('POST', `/v1/leases/${id}/renew`, {})).toMatchObject({ status: 410 });
  });

  it('deletes rows of forgotten cooldowns and of leases without a proxy, and then rests', async () => {
    await lease({ ttlSeconds: 60 });
    await ban('shop.example');
    await syncFull();
    advance(60 + 300);
    expect(await runDurableObjectAlarm(ledger())).toBe(true);
    expect(await rows('slots')).toBe(1);
    advance(300);
    expect(await runDurableObjectAlarm(ledger())).toBe(true);
    expect(await rows('slots')).toBe(0);
    expect(await rows('cooldowns')).toBe(1);
    expect(await alarmMs()).not.toBeNull();
    advance(86_400);
    expect(await runDurableObjectAlarm(ledger())).toBe(true);
    expect(await rows('cooldowns')).toBe(0);
    expect(await alarmMs()).toBeNull();
  });

  it('does no harm when it comes too early or twice', async () => {
    const { id } = await lease();
    await ban('shop.example');
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
    await syncFull();
    advance(361);
    await runInDurableObject(ledger(), (_, state) => {
      state.storage.sql.exec(
        `CREATE TRIGGER refuse BEFORE DELETE ON slots BEGIN SELECT RAISE(ABORT, 'disk full'); END`,
      );
    });
    await runDurableObjectAlarm(ledger());
    expect(await alarmMs()).toBe(Date.now() + 60_000);
    await runInDurableObject(ledger(), (_, state) => {
      state.storage.sql.exec('DROP TRIGGER refuse');
    });
    advance(60);
    await runDurableObjectAlarm(ledger());
    expect(await rows('slots')).toBe(0);
  });
});
