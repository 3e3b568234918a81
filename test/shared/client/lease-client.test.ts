import { describe, expect, it } from 'vitest';
import { createLeaseClient } from '#shared/client/lease-client.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { leaseOf } from '#test/fakes/lease.ts';

const LEASE = leaseOf('0.x');

const keyOf = (sent: Sent | undefined) => new Headers(sent?.init.headers).get('idempotency-key');

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

/** A client whose requests are kept and answered with `response`. */
function clientOf(response: () => Response | Promise<Response>, timeoutMs?: number) {
  const sent: Sent[] = [];
  const clock = new FakeClock();
  const client = createLeaseClient({
    clock,
    baseUrl: 'http://127.0.0.1:8787//',
    token: 'secret-token',
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    fetch: async (input, init = {}) => {
      sent.push({ url: String(input), init });
      init.signal?.throwIfAborted();
      return Promise.race([response(), rejectionOf(init.signal)]);
    },
  });
  return { client, sent, clock };
}

function rejectionOf(signal: AbortSignal | null | undefined): Promise<never> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

describe('the lease client', () => {
  it('sends the token as a bearer, and lease ids and filters encoded', async () => {
    const { client, sent } = clientOf(() => new Response(null, { status: 204 }));
    await client.release('a/b?c');
    expect(sent[0]).toMatchObject({
      url: 'http://127.0.0.1:8787/v1/leases/a%2Fb%3Fc',
      init: { method: 'DELETE', headers: { authorization: 'Bearer secret-token' } },
    });
    const list = clientOf(() => Response.json({ proxies: [], count: 0 }));
    await list.client.proxies({ attributes: { 'example.com/tier': 'a' }, limit: 5 });
    const url = new URL(list.sent[0]?.url ?? '');
    expect(url.searchParams.get('attr.example.com/tier')).toBe('a');
    expect(url.searchParams.get('limit')).toBe('5');
  });

  it('tells an answer of something else than an edge apart', async () => {
    for (const body of ['<html>', '"text"', 'null', '{"error": 7}']) {
      const { client } = clientOf(() => new Response(body, { status: 502 }));
      await expect(client.stats()).rejects.toMatchObject({ status: 502, code: 'http_502' });
    }
  });

  it('refuses a success whose body is not what the contract says', async () => {
    const { client } = clientOf(() => Response.json({ leaseID: 'x' }));
    await expect(client.acquire()).rejects.toThrow('proxy');
  });

  it('gives up at its deadline', async () => {
    const { client } = clientOf(() => new Promise<Response>(() => {}), 20);
    await expect(client.stats()).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  it('gives up when its caller does', async () => {
    const { client } = clientOf(() => new Promise<Response>(() => {}));
    const abort = new AbortController();
    const asking = client.acquire({}, abort.signal);
    abort.abort(new Error('no longer needed'));
    await expect(asking).rejects.toThrow('no longer needed');
  });

  it('gives each acquire a key of its own, unless it is given one', async () => {
    const { client, sent } = clientOf(() => Response.json(LEASE, { status: 201 }));
    for (const key of [undefined, undefined, 'order-7']) {
      expect(await client.acquire({}, undefined, key)).toMatchObject({ leaseID: '0.x' });
    }
    const keys = sent.map(keyOf);
    expect(keys[2]).toBe('order-7');
    expect(new Set(keys).size).toBe(3);
  });

  it('sends an acquire whose answer was lost once more, with the same key', async () => {
    const lost = () => Promise.reject(new TypeError('fetch failed'));
    const answers = [lost, () => Response.json(LEASE, { status: 201 })];
    const { client, sent, clock } = clientOf(() => (answers.shift() ?? lost)());
    const leasing = client.acquire({ ttlSeconds: 9 });
    await clock.advance(250);
    expect(await leasing).toMatchObject({ leaseID: '0.x' });
    expect(sent).toHaveLength(2);
    expect(keyOf(sent[0])).toBe(keyOf(sent[1]));
    const failing = clientOf(lost);
    const failed = failing.client.acquire().catch((error: unknown) => error);
    await failing.clock.advance(1_000);
    expect(await failed).toBeInstanceOf(TypeError);
    expect(failing.sent).toHaveLength(2);
  });

  it('comes again after the time that a 503 names, and never after another refusal', async () => {
    const refusal = (error: string, status: number) => () =>
      Response.json({ error, message: 'm', requestId: 'r', retryAfterSeconds: 2 }, { status });
    const answers = [refusal('overloaded', 503), () => Response.json(LEASE, { status: 201 })];
    const { client, sent, clock } = clientOf(() => (answers.shift() ?? refusal('internal', 500))());
    const leasing = client.acquire();
    await clock.advance(1_999);
    expect(sent).toHaveLength(1);
    await clock.advance(1);
    expect(await leasing).toMatchObject({ leaseID: '0.x' });
    for (const [code, status] of [
      ['no_match', 409],
      ['too_many_leases', 429],
      ['internal', 500],
    ] as const) {
      const other = clientOf(refusal(code, status));
      await expect(other.client.acquire()).rejects.toMatchObject({ code });
      expect(other.sent).toHaveLength(1);
    }
  });

  it('gives a request that waits so much more time', async () => {
    const { client } = clientOf(() => new Promise<Response>(() => {}), 20);
    const startedMs = performance.now();
    await expect(client.acquire({ waitSeconds: 0.1 })).rejects.toMatchObject({
      name: 'TimeoutError',
    });
    expect(performance.now() - startedMs).toBeGreaterThan(110);
  });

  it('never has the token in an error', async () => {
    const { client } = clientOf(() =>
      Response.json({ error: 'internal', message: 'm', requestId: 'r' }, { status: 500 }),
    );
    const error = await client.stats().catch((reason: unknown) => reason);
    expect(`${error} ${JSON.stringify(error)}`).not.toContain('secret-token');
  });
});
