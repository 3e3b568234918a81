import { reset } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { AGENT, crawl, entry, lease, send, sync, syncFull } from './requests.ts';

const PATH = '/v1/agents/alpha/sync';
const first = { term: 3, session: 's', seq: 1, kind: 'full', upserts: [entry('a')] };

beforeEach(() => reset());

async function gzip(text: string): Promise<ArrayBuffer> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

function sendGzip(body: ArrayBuffer) {
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  return send('POST', PATH, { token: AGENT, headers, body });
}

async function names(): Promise<string[]> {
  const { body } = await crawl('GET', '/v1/proxies');
  const { proxies } = body;
  if (!Array.isArray(proxies)) throw new Error('no proxies');
  return proxies.map((proxy: { name: string }) => proxy.name);
}

describe('POST /v1/agents/{cluster}/sync', () => {
  it('takes a full sync, deltas and heartbeats, and answers what crawlers did', async () => {
    expect(await sync(first)).toMatchObject({ status: 200, body: { acceptedSeq: 1, leases: {} } });
    const { id } = await lease({ target: 'shop.example' });
    await crawl('POST', `/v1/leases/${id}/report`, { result: 'banned' });
    const delta = { term: 3, session: 's', seq: 2, kind: 'delta', upserts: [entry('b')] };
    const answer = await sync(delta);
    expect(answer).toMatchObject({
      status: 200,
      body: {
        acceptedSeq: 2,
        leases: { 'uid-a': 1 },
        reports: { 'uid-a': { rate_limited: 0, banned: 1, targets: ['shop.example'] } },
        counters: { granted: 1 },
      },
    });
    const serverTime = Number(answer.body.serverTime);
    expect(Math.abs(serverTime - Date.now())).toBeLessThan(60_000);
    const removal = { term: 3, session: 's', seq: 3, kind: 'delta', removes: ['uid-a'] };
    expect(await sync(removal)).toMatchObject({ status: 200 });
    const heartbeat = { term: 3, session: 's', seq: 4, kind: 'heartbeat' };
    expect(await sync(heartbeat)).toMatchObject({ status: 200, body: { acceptedSeq: 4 } });
    expect(await names()).toEqual(['b']);
  });

  it('answers 409 to a lower term, with the one that took over', async () => {
    await sync(first);
    const answer = await sync({ ...first, term: 2, seq: 2 });
    expect(answer).toMatchObject({ status: 409, body: { error: 'stale_term', term: 3 } });
  });

  it('answers 409 to a gap and to an unknown session', async () => {
    await sync(first);
    for (const change of [{ seq: 3 }, { seq: 2, session: 'other' }]) {
      const answer = await sync({ ...first, kind: 'delta', ...change });
      expect(answer).toMatchObject({ status: 409, body: { error: 'resync_required' } });
    }
  });

  it('acknowledges a repetition without applying it', async () => {
    await sync(first);
    const answer = await sync({ ...first, upserts: [entry('other')] });
    expect(answer).toMatchObject({ status: 200, body: { acceptedSeq: 1 } });
    expect(await names()).toEqual(['a']);
  });

  it('takes pages, which count with the last one', async () => {
    const page = (index: number, name: string) => ({
      ...first,
      seq: index + 1,
      page: { index, of: 2 },
      upserts: [entry(name)],
    });
    expect((await sync(page(0, 'a'))).status).toBe(200);
    expect(await names()).toEqual([]);
    expect((await sync(page(1, 'b'))).status).toBe(200);
    expect(await names()).toEqual(['a', 'b']);
  });

  it('takes credentials, which no listing shows', async () => {
    const credentials = { username: 'user-name', password: 'pass-word' };
    await syncFull(entry('a', { credentials }));
    const { body } = await crawl('GET', '/v1/proxies');
    expect(body).toMatchObject({ count: 1, proxies: [{ name: 'a' }] });
    expect(JSON.stringify(body)).not.toMatch(/user-name|pass-word|credentials/);
  });
});

describe('the body of a sync', () => {
  it('may be gzip', async () => {
    expect(await sendGzip(await gzip(JSON.stringify(first)))).toMatchObject({ status: 200 });
    expect(await names()).toEqual(['a']);
  });

  it('is bounded after decompression', async () => {
    const bomb = await gzip(' '.repeat(9 * 1024 * 1024));
    expect(bomb.byteLength).toBeLessThan(100_000);
    expect(await sendGzip(bomb)).toMatchObject({
      status: 413,
      body: { error: 'payload_too_large', maxBytes: 8 * 1024 * 1024 },
    });
  });

  it('that is not gzip, or cut off, is refused as invalid', async () => {
    const whole = await gzip(JSON.stringify(first));
    for (const body of [new ArrayBuffer(20), whole.slice(0, -9)]) {
      expect(await sendGzip(body)).toMatchObject({ status: 400, body: { field: 'body' } });
    }
  });

  it('in another encoding is refused with the one that is taken', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'br' };
    const answer = await send('POST', PATH, { token: AGENT, headers, body: 'x' });
    expect(answer.status).toBe(415);
    expect(answer.headers.get('accept-encoding')).toBe('gzip');
  });

  it('of 8 MiB is taken, and one byte more is not', async () => {
    const text = JSON.stringify(first);
    const padded = text.padEnd(8 * 1024 * 1024, ' ');
    const headers = { 'content-type': 'application/json' };
    const taken = await send('POST', PATH, { token: AGENT, headers, body: padded });
    expect(taken.status).toBe(200);
    const refused = await send('POST', PATH, { token: AGENT, headers, body: `${padded} ` });
    expect(refused.status).toBe(413);
  });

  const faults: [object, string][] = [
    [{ extra: 1 }, 'extra'],
    [{ seq: 0 }, 'seq'],
    [{ kind: 'partial' }, 'kind'],
    [{ upserts: [{ ...entry('a'), colour: 'red' }] }, 'upserts.0.colour'],
    [{ upserts: [{ ...entry('a'), port: 0 }] }, 'upserts.0.port'],
    [{ page: { index: 1, of: 1 } }, 'page'],
  ];
  for (const [change, field] of faults) {
    it(`with a fault in ${field} is refused`, async () => {
      expect(await sync({ ...first, ...change })).toMatchObject({ status: 400, body: { field } });
    });
  }

  it('for another cluster than that of its token is refused before its name is looked at', async () => {
    const answer = await send('POST', '/v1/agents/%20/sync', { token: AGENT, json: first });
    expect(answer).toMatchObject({ status: 403, body: { error: 'forbidden' } });
  });
});
