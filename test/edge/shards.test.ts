/** The edge with several shards, over HTTP: it looks like one ledger. */
import { reset } from 'cloudflare:test';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { edgeWith } from './edge-app.ts';
import { AGENT, type Answer, CRAWLER, entry, type RequestOptions } from './requests.ts';

function edgeOf(shards: number, vars: Readonly<Record<string, string>> = {}) {
  let at = 0;
  const { send } = edgeWith(
    { DISCOVERY_TOKEN: CRAWLER, AGENT_TOKEN: AGENT, LEASE_SHARDS: String(shards), ...vars },
    // Every request starts at another shard.
    { clock: systemClock, random: () => (at++ % shards) / shards },
  );
  let syncs = 0;
  const session = crypto.randomUUID();
  return {
    send: (method: string, path: string, options: RequestOptions = {}) =>
      send(method, path, { token: CRAWLER, ...options }),
    lease: (json: unknown = {}, headers: Record<string, string> = {}) =>
      send('POST', '/v1/leases', { token: CRAWLER, json, headers }),
    sync: (kind: string, upserts: readonly InventoryEntry[] = [], removes: string[] = []) => {
      const json = { term: 1, session, seq: ++syncs, kind, upserts, removes };
      return send('POST', '/v1/agents/alpha/sync', { token: AGENT, json });
    },
  };
}

const fleet = (count: number, overrides: Partial<InventoryEntry> = {}) =>
  Array.from({ length: count }, (_, index) =>
    entry(`p${String(index).padStart(3, '0')}`, { maxLeases: 1, ...overrides }),
  );
const proxyOf = ({ body }: Answer) => (body.proxy as { name: string } | undefined)?.name;
const shardOf = ({ body }: Answer) => String(body.leaseID).split('.')[0];

beforeEach(() => reset());

describe('four shards', () => {
  it('lease every proxy once, from whatever shard, and refuse with the sum', async () => {
    const edge = edgeOf(4);
    expect(await edge.sync('full', fleet(20))).toMatchObject({ status: 200 });
    const leases: Answer[] = [];
    for (let round = 0; round < 20; round++) leases.push(await edge.lease({ ttlSeconds: 60 }));
    expect(new Set(leases.map(proxyOf)).size).toBe(20);
    expect(new Set(leases.map(shardOf))).toEqual(new Set(['0', '1', '2', '3']));
    const refused = await edge.lease();
    expect(refused).toMatchObject({ status: 409, body: { considered: 20, atCapacity: 20 } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(50);
    const stats = await edge.send('GET', '/v1/stats');
    expect(stats.body).toMatchObject({
      proxies: { total: 20, healthy: 20 },
      leases: { active: 20 },
      agents: [{ cluster: 'alpha', proxies: 20 }],
    });
  });

  it('list all proxies in pages', async () => {
    const edge = edgeOf(4);
    await edge.sync('full', fleet(23));
    const names: string[] = [];
    let cursor = '';
    for (let pages = 0; pages < 10; pages++) {
      const { body } = await edge.send('GET', `/v1/proxies?limit=5${cursor}`);
      expect(body.count).toBe(23);
      names.push(...(body.proxies as { name: string }[]).map(({ name }) => name));
      if (body.nextCursor === undefined) break;
      cursor = `&cursor=${body.nextCursor}`;
    }
    expect(names).toEqual(fleet(23).map(({ name }) => name));
  });

  it('know a lease by its id, and take its report, renewal and end', async () => {
    const edge = edgeOf(4);
    await edge.sync('full', fleet(8, { egressIP: '192.0.2.1' }));
    for (let round = 0; round < 4; round++) {
      const { body } = await edge.lease({ target: `t${round}.example` });
      const path = `/v1/leases/${body.leaseID}`;
      expect(await edge.send('GET', path)).toMatchObject({ status: 200 });
      expect(await edge.send('POST', `${path}/renew`, { json: {} })).toMatchObject({ status: 200 });
      const report = { result: 'rate_limited', retryAfterSeconds: 60 };
      expect((await edge.send('POST', `${path}/report`, { json: report })).status).toBe(204);
      expect((await edge.send('DELETE', path)).status).toBe(204);
      expect(await edge.send('GET', path)).toMatchObject({ status: 404 });
    }
  });

  it('grant one lease per key, also when another shard than its home has it', async () => {
    const edge = edgeOf(4);
    await edge.sync('full', fleet(12));
    for (let index = 0; index < 12; index++) {
      const headers = { 'idempotency-key': `key-${index}` };
      const first = await edge.lease({}, headers);
      const again = await edge.lease({}, headers);
      expect([first.status, again.body.leaseID]).toEqual([201, first.body.leaseID]);
      const mismatch = await edge.lease({ ttlSeconds: 9 }, headers);
      expect(mismatch).toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } });
    }
    expect(await edge.lease({}, { 'idempotency-key': 'one-more' })).toMatchObject({ status: 409 });
  });

  it('keep a session on its proxy, also when another shard than its home has it', async () => {
    const edge = edgeOf(4);
    await edge.sync('full', fleet(3, { maxLeases: 100 }));
    for (const sessionKey of ['a', 'b', 'c', 'd', 'e', 'f']) {
      const first = await edge.lease({ sessionKey });
      await edge.send('DELETE', `/v1/leases/${first.body.leaseID}`);
      for (let round = 0; round < 3; round++) await edge.lease();
      expect(proxyOf(await edge.lease({ sessionKey }))).toBe(proxyOf(first));
    }
  });

  it('keep a session on its proxy when every request has an idempotency key as well', async () => {
    const edge = edgeOf(4);
    await edge.sync('full', fleet(12, { maxLeases: 100 }));
    for (const sessionKey of ['a', 'b', 'c', 'd']) {
      const names = new Set<string | undefined>();
      for (let round = 0; round < 6; round++) {
        const headers = { 'idempotency-key': `${sessionKey}-${round}` };
        const first = await edge.lease({ sessionKey }, headers);
        const again = await edge.lease({ sessionKey }, headers);
        expect(again.body.leaseID).toBe(first.body.leaseID);
        const other = await edge.lease({ sessionKey: 'other' }, headers);
        expect(other).toMatchObject({ status: 422 });
        names.add(proxyOf(first));
      }
      expect(names.size).toBe(1);
    }
  });

  it('grant one lease per key, also when its home had given the client enough', async () => {
    const edge = edgeOf(4, { CLIENT_LIMITS: 'default leases=4' });
    await edge.sync('full', fleet(40));
    const release = (one: Answer | undefined) =>
      edge.send('DELETE', `/v1/leases/${one?.body.leaseID}`);
    for (let index = 0; index < 8; index++) {
      const held: Answer[] = [];
      for (let round = 0; round < 4; round++) held.push(await edge.lease());
      expect(await edge.lease()).toMatchObject({ status: 429 });
      // Room in one shard, which is not the home of most keys; then in all of them.
      await release(held[index % 4]);
      const headers = { 'idempotency-key': `key-${index}` };
      const first = await edge.lease({}, headers);
      for (const one of held) await release(one);
      expect((await edge.lease({}, headers)).body.leaseID).toBe(first.body.leaseID);
      await release(first);
    }
  });

  it('let a request wait in all of them, and none keeps what another one granted', async () => {
    const edge = edgeOf(4);
    await edge.sync('full', fleet(4));
    const held = [];
    for (let round = 0; round < 4; round++) held.push(await edge.lease());
    const waiters = [1, 2].map(() => edge.lease({ waitSeconds: 10 }));
    await systemClock.sleep(200);
    expect((await edge.send('GET', '/v1/stats')).body.waiting).toBe(8);
    await Promise.all(held.map(({ body }) => edge.send('DELETE', `/v1/leases/${body.leaseID}`)));
    for (const answer of await Promise.all(waiters)) expect(answer.status).toBe(201);
    await systemClock.sleep(200);
    expect((await edge.send('GET', '/v1/stats')).body).toMatchObject({
      waiting: 0,
      leases: { active: 2 },
    });
  });

  it('hear of what concerns them, and all of a heartbeat', async () => {
    const edge = edgeOf(4);
    await edge.sync('full', fleet(12));
    await edge.lease();
    const [first] = fleet(12);
    const delta = await edge.sync('delta', [{ ...(first ?? entry('x')), draining: true }]);
    expect(delta).toMatchObject({ status: 200, body: { partial: true, counters: {} } });
    expect(delta.body.leases).toHaveProperty(first?.uid ?? '');
    const heartbeat = await edge.sync('heartbeat');
    expect(heartbeat).toMatchObject({ status: 200, body: { counters: { granted: 1 } } });
    expect(heartbeat.body).not.toHaveProperty('partial');
  });
});

describe('a change of the number of shards', () => {
  for (const [from, to] of [
    [1, 4],
    [4, 2],
  ] as const) {
    it(`from ${from} to ${to} loses no lease and grants none twice`, async () => {
      const before = edgeOf(from);
      await before.sync('full', fleet(20));
      const held: Answer[] = [];
      for (let round = 0; round < 12; round++) held.push(await before.lease());
      const after = edgeOf(to);
      expect(await after.sync('full', fleet(20))).toMatchObject({ status: 200 });
      const more: Answer[] = [];
      for (let round = 0; round < 9; round++) more.push(await after.lease());
      expect(more.map(({ status }) => status)).toEqual([
        201, 201, 201, 201, 201, 201, 201, 201, 409,
      ]);
      const leased = [...held, ...more.slice(0, 8)].map(proxyOf);
      expect(new Set(leased).size).toBe(20);
      const tokens = [...held, ...more.slice(0, 8)].map(({ body }) => Number(body.token));
      expect(Math.min(...tokens.slice(12))).toBeGreaterThan(Math.max(...tokens.slice(0, 12)));
      for (const { body } of held) {
        const path = `/v1/leases/${body.leaseID}`;
        expect(await after.send('GET', path)).toMatchObject({ status: 200 });
        expect(await after.send('POST', `${path}/renew`, { json: {} })).toMatchObject({
          status: 200,
        });
        expect((await after.send('DELETE', path)).status).toBe(204);
      }
      // The next sync brings home that the old leases are over.
      await vi.waitFor(async () => {
        await after.sync('heartbeat');
        expect((await after.lease()).status).toBe(201);
      }, 5_000);
    });
  }
});
