/** What one client may have, and what it may do to the others. */
import { reset } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { edgeWith } from './edge-app.ts';
import { entry, syncFull } from './requests.ts';

const TOKENS = { DISCOVERY_TOKEN: 'shop=shop-secret\nnews=news-secret' };

beforeEach(async () => {
  await reset();
  await syncFull(
    entry('a', { maxLeases: 100, egressIP: '192.0.2.1' }),
    entry('b', { maxLeases: 100, egressIP: '192.0.2.2' }),
  );
});

function clientsOf(vars: Readonly<Record<string, string>>) {
  const { send } = edgeWith({ ...TOKENS, ...vars });
  const as = (token: string) => ({
    lease: (json: unknown = {}) => send('POST', '/v1/leases', { token, json }),
    release: (id: unknown) => send('DELETE', `/v1/leases/${id}`, { token }),
    report: (id: unknown, json: unknown) =>
      send('POST', `/v1/leases/${id}/report`, { token, json }),
    stats: () => send('GET', '/v1/stats', { token }),
  });
  return { shop: as('shop-secret'), news: as('news-secret') };
}

describe('the limit of leases', () => {
  it('is of each client, and answers 429 with the time when one ends', async () => {
    const { shop, news } = clientsOf({ CLIENT_LIMITS: 'shop leases=2' });
    const first = await shop.lease({ ttlSeconds: 50 });
    await shop.lease({ ttlSeconds: 70 });
    const refused = await shop.lease();
    expect(refused).toMatchObject({ status: 429, body: { error: 'too_many_leases' } });
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(45);
    expect(seconds).toBeLessThanOrEqual(50);
    expect(refused.body.retryAfterSeconds).toBe(seconds);
    expect((await news.lease()).status).toBe(201);
    await shop.release(first.body.leaseID);
    expect((await shop.lease()).status).toBe(201);
  });

  it('is kept over several shards', async () => {
    const vars = { CLIENT_LIMITS: '* leases=5', LEASE_SHARDS: '4', AGENT_TOKEN: 'alpha=secret' };
    const { send } = edgeWith({ ...TOKENS, ...vars });
    const upserts = Array.from({ length: 40 }, (_, index) => entry(`p${index}`));
    const full = { term: 2, session: 's', seq: 1, kind: 'full', upserts };
    await send('POST', '/v1/agents/alpha/sync', { token: 'secret', json: full });
    const { shop, news } = clientsOf(vars);
    const statuses: number[] = [];
    for (let round = 0; round < 8; round++) statuses.push((await shop.lease()).status);
    expect(statuses).toEqual([201, 201, 201, 201, 201, 429, 429, 429]);
    expect((await news.lease()).status).toBe(201);
  });
});

describe('the limit of requests', () => {
  it('answers 429 with the time after which there is room, and takes every release', async () => {
    const { shop, news } = clientsOf({ CLIENT_LIMITS: 'shop rate=2\nnews rate=1000' });
    const leases = [await shop.lease(), await shop.lease()];
    const refused = await shop.stats();
    expect(refused).toMatchObject({
      status: 429,
      body: { error: 'too_many_requests', retryAfterSeconds: 1 },
    });
    expect(refused.headers.get('retry-after')).toBe('1');
    for (const { body } of leases) expect((await shop.release(body.leaseID)).status).toBe(204);
    expect((await news.stats()).status).toBe(200);
  });
});

describe('the stats', () => {
  it('tell of each client by its name', async () => {
    const { shop, news } = clientsOf({ CLIENT_LIMITS: 'news leases=1' });
    const { body } = await shop.lease({ target: 'x.example' });
    await shop.lease({ selector: { no: 'where' } });
    await shop.report(body.leaseID, { result: 'banned' });
    await news.lease();
    await news.lease();
    const stats = await shop.stats();
    expect(stats.body.clients).toEqual([
      {
        name: 'news',
        activeLeases: 1,
        waiting: 0,
        outcomes: { granted: 1, too_many_leases: 1 },
        reports: {},
      },
      {
        name: 'shop',
        activeLeases: 1,
        waiting: 0,
        outcomes: { granted: 1, no_match: 1 },
        reports: { banned: 1 },
      },
    ]);
    expect(JSON.stringify(stats.body)).not.toMatch(/secret/);
  });
});

describe('the reports of one client', () => {
  it('act on the egress of its own lease alone, and once for each lease and target', async () => {
    const { shop, news } = clientsOf({});
    const { body } = await shop.lease({ target: 'x.example' });
    for (let round = 0; round < 20; round++) {
      await shop.report(body.leaseID, { result: 'rate_limited', retryAfterSeconds: 60 });
    }
    const others = await news.lease({ target: 'x.example' });
    expect(others.status).toBe(201);
    expect(others.body.proxy).not.toMatchObject({ name: (body.proxy as { name: string }).name });
    // One offence of 60 s, not a doubled one: the lease has had its say.
    await news.report(others.body.leaseID, { result: 'rate_limited', retryAfterSeconds: 60 });
    const refused = await news.lease({ target: 'x.example' });
    expect(refused).toMatchObject({ status: 409, body: { inCooldown: 2 } });
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(60);
  });

  it('need its lease: an id that nobody holds changes nothing', async () => {
    const { shop, news } = clientsOf({});
    const { body } = await shop.lease({ target: 'x.example' });
    await shop.release(body.leaseID);
    for (const id of [body.leaseID, '0.guess']) {
      expect((await news.report(id, { result: 'banned', target: 'y.example' })).status).toBe(404);
    }
    expect((await news.lease({ target: 'y.example' })).status).toBe(201);
    expect((await news.stats()).body.cooldowns).toBe(0);
  });
});
