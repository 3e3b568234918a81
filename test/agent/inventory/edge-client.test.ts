import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createEdgeClient, SYNC_TIMEOUT_MS } from '#agent/inventory/edge-client.ts';
import { FakeClock } from '#test/fakes/clock.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

type Received = { readonly request: IncomingMessage; readonly body: Buffer };
type Answer = (response: ServerResponse, received: Received) => void;

async function setUp(answer: Answer, prefix = '') {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const arrived = { request, body: Buffer.concat(chunks) };
    received.push(arrived);
    answer(response, arrived);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const clock = new FakeClock();
  const client = createEdgeClient({
    clock,
    edgeUrl: `http://127.0.0.1:${port}${prefix}`,
    cluster: 'home',
    token: async () => TOKEN,
  });
  closing.push(
    () => new Promise((resolve) => server.close(resolve)),
    async () => server.closeAllConnections(),
    () => client.close(),
  );
  return { client, clock, received };
}

const TOKEN = 'secret-of-the-agent';
const never = new AbortController().signal;
const good = { acceptedSeq: 1, serverTime: 5, leases: {}, reports: {}, counters: {} };

const json =
  (status: number, body: unknown): Answer =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
const refusal = (status: number, error: string) =>
  json(status, { error, message: 'the reason', requestId: 'r1' });

describe('edge client', () => {
  test('posts to the route of its cluster, with its token', async () => {
    const { client, received } = await setUp(json(200, good), '/base');
    expect(await client.sync('{"a":1}', never)).toEqual({ kind: 'accepted', response: good });
    const { request, body } = received[0] ?? {};
    expect(request?.method).toBe('POST');
    expect(request?.url).toBe('/base/v1/agents/home/sync');
    expect(request?.headers).toMatchObject({
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
    });
    expect(request?.headers['content-encoding']).toBeUndefined();
    expect(body?.toString()).toBe('{"a":1}');
  });

  test('a large body is compressed', async () => {
    const { client, received } = await setUp(json(200, good));
    const body = JSON.stringify({ long: 'x'.repeat(100_000) });
    await client.sync(body, never);
    expect(received[0]?.request.headers['content-encoding']).toBe('gzip');
    const sent = received[0]?.body ?? Buffer.of();
    expect(sent.length).toBeLessThan(5_000);
    expect(gunzipSync(sent).toString()).toBe(body);
  });

  test.each([
    [409, 'resync_required', 'resync-required'],
    [409, 'stale_term', 'stale-term'],
    [400, 'invalid_request', 'refused'],
    [401, 'unauthorized', 'refused'],
    [403, 'forbidden', 'refused'],
    [404, 'not_found', 'refused'],
    [413, 'payload_too_large', 'refused'],
    [500, 'internal', 'unavailable'],
    [503, 'auth_not_configured', 'unavailable'],
    [503, 'overloaded', 'unavailable'],
    [429, 'overloaded', 'unavailable'],
  ])('%i %s is %s', async (status, code, kind) => {
    const { client } = await setUp(refusal(status, code));
    expect((await client.sync('{}', never)).kind).toBe(kind);
  });

  test.each([
    [401, 'unauthorized', '--agent-token-file'],
    [403, 'forbidden', '--cluster-name'],
    [404, 'not_found', '--edge-url'],
  ])('the message of a %i %s names what to look at: %s', async (status, code, flag) => {
    const { client } = await setUp(refusal(status, code));
    const outcome = await client.sync('{}', never);
    expect(outcome).toMatchObject({ message: expect.stringContaining(flag) });
    expect(outcome).toMatchObject({ message: expect.stringContaining('the reason (request r1)') });
    expect(JSON.stringify(outcome)).not.toContain(TOKEN);
  });

  test('a 200 that is not the answer of an edge is not taken for one', async () => {
    const { client } = await setUp(json(200, { hello: 'world' }));
    expect(await client.sync('{}', never)).toMatchObject({ kind: 'unavailable' });
  });

  test('an edge that is silent, also in the middle of its answer, is given up in time', async () => {
    const { client, clock, received } = await setUp((response, { body }) => {
      if (body.toString() === '{"half":1}') response.write('{"acc');
    });
    for (const body of ['{}', '{"half":1}']) {
      const outcome = client.sync(body, never);
      await vi.waitFor(() => expect(received.at(-1)?.body.toString()).toBe(body));
      await clock.advance(SYNC_TIMEOUT_MS);
      expect(await outcome).toMatchObject({ kind: 'unavailable' });
    }
  });

  test('an edge that is not there is unavailable, with a reason', async () => {
    const client = createEdgeClient({
      clock: new FakeClock(),
      edgeUrl: 'http://127.0.0.1:1',
      cluster: 'home',
      token: async () => 't',
    });
    const outcome = await client.sync('{}', never);
    expect(outcome).toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining('ECONNREFUSED'),
    });
    await client.close();
  });

  test('an abort by the caller is thrown', async () => {
    const { client, received } = await setUp(() => {});
    const stop = new AbortController();
    const call = client.sync('{}', stop.signal);
    await vi.waitFor(() => expect(received).toHaveLength(1));
    stop.abort(new Error('stopping'));
    await expect(call).rejects.toThrow('stopping');
  });
});
