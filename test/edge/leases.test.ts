import { reset } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { CRAWLER, crawl, entry, lease, send, syncFull } from './requests.ts';

beforeEach(async () => {
  await reset();
  await syncFull(entry('a', { credentials: { username: 'u', password: 'p@ss' } }));
});

describe('POST /v1/leases', () => {
  it('answers 201 with a lease whose url carries the credentials', async () => {
    const answer = await lease({ target: 'https://WWW.Example.com:8443/x', ttlSeconds: 60 });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({
      proxy: { cluster: 'alpha', name: 'a', url: 'http://u:p%40ss@a.example:3128' },
      target: 'www.example.com',
      ttlSeconds: 60,
    });
    expect(answer.id).toMatch(/^0\.[A-Za-z0-9_-]{22}$/);
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  it('takes an empty body for an empty wish', async () => {
    const answer = await send('POST', '/v1/leases', { token: CRAWLER });
    expect(answer).toMatchObject({ status: 201, body: { ttlSeconds: 300 } });
  });

  it('answers 409 with the counts, the time to wait and Retry-After', async () => {
    await syncFull(entry('a', { maxLeases: 1 }), entry('b', { healthy: false }));
    await lease({ ttlSeconds: 40 });
    const answer = await lease();
    expect(answer.status).toBe(409);
    expect(answer.body).toMatchObject({
      error: 'no_match',
      considered: 2,
      atCapacity: 1,
      inCooldown: 0,
      unhealthy: 1,
      eligible: 0,
    });
    const seconds = Number(answer.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(35);
    expect(seconds).toBeLessThanOrEqual(40);
    expect(answer.body.retryAfterSeconds).toBe(seconds);
  });

  it('names no time to wait when nothing frees by itself', async () => {
    const answer = await lease({ selector: { region: 'nowhere' } });
    expect(answer).toMatchObject({ status: 409, body: { considered: 0 } });
    expect(answer.headers.has('retry-after')).toBe(false);
    expect(answer.body).not.toHaveProperty('retryAfterSeconds');
  });

  const faults: [unknown, string, string][] = [
    [{ ttlSeconds: 3601 }, 'ttl_too_long', 'ttlSeconds'],
    [{ ttlSeconds: 0 }, 'invalid_request', 'ttlSeconds'],
    [{ ttlSeconds: 1.5 }, 'invalid_request', 'ttlSeconds'],
    [{ ttlSeconds: '60' }, 'invalid_request', 'ttlSeconds'],
    [{ ttlSeconds: 1e300 }, 'invalid_request', 'ttlSeconds'],
    [{ target: '' }, 'invalid_request', 'target'],
    [{ target: 'http://' }, 'invalid_request', 'target'],
    [{ target: `${'a.'.repeat(130)}com` }, 'invalid_request', 'target'],
    [{ strategy: 'best' }, 'invalid_request', 'strategy'],
    [{ selector: { 'bad key': 'x' } }, 'invalid_request', 'selector.bad key'],
    [{ selector: { region: 'no spaces' } }, 'invalid_request', 'selector.region'],
    [{ selector: JSON.parse('{"__proto__":"x"}') }, 'invalid_request', 'selector.__proto__'],
    [JSON.parse('{"__proto__":"x"}'), 'invalid_request', '__proto__'],
    [{ surprise: 1 }, 'invalid_request', 'surprise'],
    [[], 'invalid_request', 'body'],
    [null, 'invalid_request', 'body'],
    ['text', 'invalid_request', 'body'],
  ];
  for (const [json, error, field] of faults) {
    it(`refuses ${JSON.stringify(json).slice(0, 40)} and names ${field}`, async () => {
      expect(await lease(json)).toMatchObject({ status: 400, body: { error, field } });
    });
  }
});

describe('a lease over HTTP', () => {
  it('is shown, renewed, released', async () => {
    const { id, body } = await lease({ ttlSeconds: 60 });
    const shown = await crawl('GET', `/v1/leases/${id}`);
    expect(shown).toMatchObject({ status: 200, body: { leaseID: id, token: body.token } });
    const renewed = await crawl('POST', `/v1/leases/${id}/renew`, { ttlSeconds: 120 });
    expect(renewed).toMatchObject({ status: 200, body: { leaseID: id, ttlSeconds: 120 } });
    const released = await crawl('DELETE', `/v1/leases/${id}`);
    expect(released).toMatchObject({ status: 204, body: { text: '' } });
    expect(await crawl('DELETE', `/v1/leases/${id}`)).toMatchObject({ status: 204 });
    const gone = { status: 404, body: { error: 'unknown_lease' } };
    expect(await crawl('GET', `/v1/leases/${id}`)).toMatchObject(gone);
    expect(await crawl('POST', `/v1/leases/${id}/renew`, {})).toMatchObject(gone);
    expect(await crawl('POST', `/v1/leases/${id}/report`, { result: 'ok' })).toMatchObject(gone);
  });

  it('that nobody was granted is unknown, but can always be released', async () => {
    for (const id of ['nope', '%00', '%ff', 'a%2Fb', '__proto__', 'x'.repeat(2_000)]) {
      expect(await crawl('GET', `/v1/leases/${id}`)).toMatchObject({ status: 404 });
      expect(await crawl('DELETE', `/v1/leases/${id}`)).toMatchObject({ status: 204 });
    }
  });

  it('is refused too long a renewal', async () => {
    const { id } = await lease();
    const answer = await crawl('POST', `/v1/leases/${id}/renew`, { ttlSeconds: 3601 });
    expect(answer).toMatchObject({ status: 400, body: { error: 'ttl_too_long' } });
  });

  it('answers 410 to a renewal, 404 to a look, 204 to a report without its proxy', async () => {
    const { id } = await lease();
    await syncFull(entry('a', { instance: 'a@2' }));
    const renewed = await crawl('POST', `/v1/leases/${id}/renew`, {});
    expect(renewed).toMatchObject({ status: 410, body: { error: 'proxy_gone' } });
    const shown = await crawl('GET', `/v1/leases/${id}`);
    expect(shown).toMatchObject({ status: 404, body: { error: 'unknown_lease' } });
    const reported = await crawl('POST', `/v1/leases/${id}/report`, { result: 'banned' });
    expect(reported.status).toBe(204);
  });
});

describe('POST /v1/leases/{id}/report', () => {
  it('sends the pair of egress and target to rest', async () => {
    const { id } = await lease({ target: 'shop.example' });
    const report = { result: 'rate_limited', retryAfterSeconds: 77 };
    expect((await crawl('POST', `/v1/leases/${id}/report`, report)).status).toBe(204);
    const refused = await lease({ target: 'http://SHOP.example./cart' });
    expect(refused).toMatchObject({ status: 409, body: { inCooldown: 1 } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(70);
    expect((await lease({ target: 'other.example' })).status).toBe(201);
    expect((await crawl('GET', '/v1/stats')).body.cooldowns).toBe(1);
  });

  const faults: [unknown, string, string][] = [
    [{ result: 'slow' }, 'invalid_result', 'result'],
    [{ result: 7 }, 'invalid_result', 'result'],
    [{}, 'invalid_result', 'result'],
    [{ result: 'ok', target: ':' }, 'invalid_request', 'target'],
    [{ result: 'rate_limited', retryAfterSeconds: 0 }, 'invalid_request', 'retryAfterSeconds'],
    [{ result: 'ok', extra: true }, 'invalid_request', 'extra'],
  ];
  for (const [json, error, field] of faults) {
    it(`refuses ${JSON.stringify(json)}`, async () => {
      const { id } = await lease();
      const answer = await crawl('POST', `/v1/leases/${id}/report`, json);
      expect(answer).toMatchObject({ status: 400, body: { error, field } });
    });
  }
});
