import { reset } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { CRAWLER, crawl, entry, send, syncFull } from './requests.ts';

const OTHER = 'crawler-two-secret';

beforeEach(async () => {
  await reset();
  await syncFull(entry('a', { maxLeases: 100 }), entry('b', { maxLeases: 100 }));
});

function keyed(key: string, json: unknown = {}, token = CRAWLER) {
  return send('POST', '/v1/leases', { token, json, headers: { 'Idempotency-Key': key } });
}

describe('Idempotency-Key', () => {
  it('gets the same lease again for the same body', async () => {
    const wish = { selector: {}, target: 'shop.example', ttlSeconds: 60 };
    const first = await keyed('k', wish);
    const again = await keyed('k', wish);
    expect(again.status).toBe(201);
    const { leaseID, token, proxy, expiresAt } = first.body;
    expect(again.body).toMatchObject({ leaseID, token, proxy, expiresAt });
    expect((await crawl('GET', '/v1/stats')).body).toMatchObject({ leases: { active: 1 } });
  });

  it('takes for the same body what asks for the same, however it is written', async () => {
    const first = await keyed('k', { target: 'https://SHOP.example/cart', ttlSeconds: 60 });
    for (const wish of [
      { ttlSeconds: 60, target: 'shop.example' },
      { target: 'shop.example.', ttlSeconds: 60, waitSeconds: 3 },
    ]) {
      expect(await keyed('k', wish)).toMatchObject({ body: { leaseID: first.body.leaseID } });
    }
  });

  it('refuses another body with 422 while the lease lives', async () => {
    const first = await keyed('k', { ttlSeconds: 60 });
    for (const wish of [{ ttlSeconds: 61 }, {}, { ttlSeconds: 60, sessionKey: 's' }]) {
      const answer = await keyed('k', wish);
      expect(answer).toMatchObject({ status: 422, body: { error: 'idempotency_mismatch' } });
    }
    await crawl('DELETE', `/v1/leases/${first.body.leaseID}`);
    const next = await keyed('k', {});
    expect(next.status).toBe(201);
    expect(next.body.leaseID).not.toBe(first.body.leaseID);
  });

  it('is a key of its client: another client has its own', async () => {
    const mine = await keyed('k');
    const others = await keyed('k', { ttlSeconds: 5 }, OTHER);
    expect(others.status).toBe(201);
    expect(others.body.leaseID).not.toBe(mine.body.leaseID);
  });

  it('grants one lease to many requests at once', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => keyed('k')));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(answers.map(({ body }) => body.leaseID)).size).toBe(1);
  });

  it('is printable ASCII of 1 to 256 characters', async () => {
    for (const key of ['x', ' inner space ', '~!"\\', 'x'.repeat(256)]) {
      expect((await keyed(key)).status).toBe(201);
    }
    for (const key of ['', 'x'.repeat(257), 'ü', 'a\tb']) {
      const answer = await keyed(key);
      expect(answer).toMatchObject({
        status: 400,
        body: { error: 'invalid_request', field: 'Idempotency-Key' },
      });
    }
  });
});

describe('sessionKey', () => {
  const session = async (sessionKey: string, token = CRAWLER) => {
    const answer = await send('POST', '/v1/leases', { token, json: { sessionKey } });
    await send('DELETE', `/v1/leases/${answer.body.leaseID}`, { token });
    return (answer.body.proxy as { name: string }).name;
  };

  it('gets the same proxy again, also when another one has fewer leases', async () => {
    const first = await session('cart-7');
    for (let round = 0; round < 5; round++) await crawl('POST', '/v1/leases', {});
    for (let round = 0; round < 3; round++) expect(await session('cart-7')).toBe(first);
  });

  it('has 1 to 256 characters', async () => {
    for (const sessionKey of ['', 'x'.repeat(257), 7]) {
      const answer = await crawl('POST', '/v1/leases', { sessionKey });
      expect(answer).toMatchObject({ status: 400, body: { field: 'sessionKey' } });
    }
  });
});
