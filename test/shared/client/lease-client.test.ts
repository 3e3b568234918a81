import { describe, expect, it } from 'vitest';
import { createLeaseClient } from '#shared/client/lease-client.ts';

interface Sent {
  readonly url: string;
  readonly init: RequestInit;
}

/** A client whose requests are kept and answered with `response`. */
function clientOf(response: () => Response | Promise<Response>, timeoutMs?: number) {
  const sent: Sent[] = [];
  const client = createLeaseClient({
    baseUrl: 'http://127.0.0.1:8787//',
    token: 'secret-token',
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    fetch: async (input, init = {}) => {
      sent.push({ url: String(input), init });
      init.signal?.throwIfAborted();
      return Promise.race([response(), rejectionOf(init.signal)]);
    },
  });
  return { client, sent };
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

  it('never has the token in an error', async () => {
    const { client } = clientOf(() =>
      Response.json({ error: 'internal', message: 'm', requestId: 'r' }, { status: 500 }),
    );
    const error = await client.stats().catch((reason: unknown) => reason);
    expect(`${error} ${JSON.stringify(error)}`).not.toContain('secret-token');
  });
});
