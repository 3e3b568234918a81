/** The typed client against the real edge. */
import { exports } from 'cloudflare:workers';
import { beforeAll, describe, expect, it } from 'vitest';
import { createLeaseClient, LeaseApiError } from '#shared/client/lease-client.ts';
import { CRAWLER, entry, syncFull } from './requests.ts';

const client = createLeaseClient({
  baseUrl: 'https://edge.example/',
  token: CRAWLER,
  fetch: (input, init) => exports.default.fetch(new Request(input, init)),
});

async function errorOf(promise: Promise<unknown>): Promise<LeaseApiError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof LeaseApiError)) throw new Error(`not a refusal: ${error}`);
  return error;
}

describe('the lease client', () => {
  beforeAll(async () => {
    await syncFull(
      entry('a', { attributes: { region: 'eu' }, maxLeases: 1 }),
      entry('b', { attributes: { region: 'us' }, healthy: false }),
    );
  });

  it('goes through the whole life of a lease', async () => {
    const lease = await client.acquire({ selector: { region: 'eu' }, target: 'shop.example' });
    expect(lease.proxy).toMatchObject({ name: 'a', url: 'http://a.example:3128' });
    expect(await client.get(lease.leaseID)).toMatchObject({ token: lease.token });
    expect(await client.renew(lease.leaseID, 77)).toMatchObject({ ttlSeconds: 77 });
    expect(await client.renew(lease.leaseID)).toMatchObject({ ttlSeconds: 300 });
    await client.report(lease.leaseID, { result: 'banned' });
    await client.release(lease.leaseID);
    expect(await client.stats()).toMatchObject({ leases: { active: 0 }, cooldowns: 1 });
  });

  it('lists proxies by attribute, health and page', async () => {
    const filtered = await client.proxies({ attributes: { region: 'us' }, healthy: false });
    expect(filtered.proxies.map((proxy) => proxy.name)).toEqual(['b']);
    const first = await client.proxies({ limit: 1 });
    expect(first).toMatchObject({ count: 2, proxies: [{ name: 'a' }] });
    const cursor = first.nextCursor ?? '';
    expect(await client.proxies({ limit: 1, cursor })).toMatchObject({ proxies: [{ name: 'b' }] });
  });

  it('rejects with the code, the status and the further fields of a refusal', async () => {
    const refusal = await errorOf(client.acquire({ selector: { region: 'moon' } }));
    expect(refusal).toMatchObject({ status: 409, code: 'no_match', body: { considered: 0 } });
    expect(await errorOf(client.get('nope'))).toMatchObject({ status: 404, code: 'unknown_lease' });
    const stranger = createLeaseClient({
      baseUrl: 'https://edge.example',
      token: 'wrong',
      fetch: (input, init) => exports.default.fetch(new Request(input, init)),
    });
    expect(await errorOf(stranger.stats())).toMatchObject({ status: 401, code: 'unauthorized' });
  });
});
