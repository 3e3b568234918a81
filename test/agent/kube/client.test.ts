import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createKubeClient, type KubeClient } from '#agent/kube/client.ts';
import { KubeError } from '#agent/kube/errors.ts';
import { createResource, PODS, resourcePath } from '#agent/kube/resource.ts';
import {
  answerJson,
  type FakeApiServer,
  type FakeHandler,
  listBody,
  startFakeApiServer,
  statusBody,
} from '#test/fakes/api-server.ts';
import { FakeClock } from '#test/fakes/clock.ts';

let server: FakeApiServer;
let client: KubeClient;
let handler: FakeHandler;
const clock = new FakeClock();
const access = {
  server: '',
  credentials: vi.fn(async () => ({ headers: { authorization: 'Bearer t1' }, tls: {} })),
  refresh: vi.fn(),
};

beforeEach(async () => {
  vi.clearAllMocks();
  server = await startFakeApiServer((request, response) => handler(request, response));
  client = createKubeClient({
    access: { ...access, server: server.url },
    clock,
    userAgent: 'ua/1',
  });
});
afterEach(async () => {
  await client.close();
  await server.close();
});

async function failureOf(call: Promise<unknown>): Promise<KubeError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof KubeError)) throw new Error(`not a KubeError: ${String(error)}`);
  return error;
}

const get = { path: '/api/v1/pods' };

describe('kube client', () => {
  test('sends credentials, query and a JSON body, and gives the parsed answer', async () => {
    handler = (_request, response) => answerJson(response, 201, { ok: true });
    const answer = await client.request({
      method: 'PATCH',
      path: '/api/v1/pods/a',
      query: { dryRun: 'All', absent: undefined },
      body: { a: 1 },
      contentType: 'application/merge-patch+json',
    });
    expect(answer).toEqual({ ok: true });
    const [request] = server.requests;
    expect(request?.method).toBe('PATCH');
    expect(request?.body).toBe('{"a":1}');
    expect([...(request?.query ?? [])]).toEqual([['dryRun', 'All']]);
    expect(request?.headers).toMatchObject({
      authorization: 'Bearer t1',
      'content-type': 'application/merge-patch+json',
      'user-agent': 'ua/1',
    });
  });

  test('many requests in a row do not open a connection each', async () => {
    handler = (_request, response) => answerJson(response, 200, {});
    for (let nth = 0; nth < 20; nth++) await client.request(get);
    expect(server.openConnections).toBeLessThanOrEqual(2);
  });

  test.each([
    [401, 'Unauthorized', 'Unauthorized', true],
    [403, 'Forbidden', 'Forbidden', false],
    [404, 'NotFound', 'NotFound', false],
    [409, 'Conflict', 'Conflict', true],
    [409, 'AlreadyExists', 'AlreadyExists', false],
    [410, 'Expired', 'Gone', true],
    [422, 'Invalid', 'Invalid', false],
    [429, 'TooManyRequests', 'TooManyRequests', true],
    [500, 'InternalError', 'ServerError', true],
    [503, 'ServiceUnavailable', 'ServerError', true],
    [400, 'BadRequest', 'Other', false],
  ] as const)(
    '%i %s is a KubeError %s (retryable: %s)',
    async (status, said, reason, retryable) => {
      handler = (_request, response) =>
        answerJson(response, status, statusBody(status, said, 'why'));
      const error = await failureOf(client.request(get));
      expect(error).toMatchObject({ status, reason, retryable });
      expect(error.message).toBe(`GET /api/v1/pods: ${status}: why`);
    },
  );

  test('the wish to be asked later is passed on, in milliseconds and bounded', async () => {
    handler = (_request, response) => {
      response.setHeader('retry-after', '7');
      answerJson(response, 429, {});
    };
    expect((await failureOf(client.request(get))).retryAfterMs).toBe(7_000);
    handler = (_request, response) => {
      response.setHeader('retry-after', '86400');
      answerJson(response, 429, {});
    };
    expect((await failureOf(client.request(get))).retryAfterMs).toBe(60_000);
  });

  test('a page of HTML from something in between becomes a short message', async () => {
    handler = (_request, response) => {
      response.writeHead(502).end(`<html>${'x'.repeat(5_000)}</html>`);
    };
    const error = await failureOf(client.request(get));
    expect(error).toMatchObject({ status: 502, reason: 'ServerError' });
    expect(error.message.length).toBeLessThan(300);
    handler = (_request, response) => void response.writeHead(200).end('<html>');
    expect((await failureOf(client.request(get))).message).toContain('not JSON');
  });

  test('a refused token is read again once and the request repeated', async () => {
    handler = (_request, response) => {
      if (access.refresh.mock.calls.length === 0) answerJson(response, 401, {});
      else answerJson(response, 200, { ok: true });
    };
    expect(await client.request(get)).toEqual({ ok: true });
    expect(access.refresh).toHaveBeenCalledTimes(1);
    expect(server.requests).toHaveLength(2);
  });

  test('a server that does not answer is given up at the deadline', async () => {
    handler = () => {};
    const failure = failureOf(client.request({ ...get, timeoutMs: 3_000 }));
    await vi.waitFor(() => expect(server.requests).toHaveLength(1));
    await clock.advance(3_000);
    expect(await failure).toMatchObject({ status: 0, reason: 'Unreachable', retryable: true });
    expect((await failure).message).toContain('no answer within 3000 ms');
  });

  test('the deadline covers an answer that stops in its middle', async () => {
    handler = (_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{"half":');
    };
    const failure = failureOf(client.request({ ...get, timeoutMs: 3_000 }));
    await vi.waitFor(() => expect(server.requests).toHaveLength(1));
    await clock.advance(3_000);
    expect(await failure).toMatchObject({ reason: 'Unreachable' });
  });

  test('an abort by the caller is thrown as its reason, not as a failure of the server', async () => {
    handler = () => {};
    const stop = new AbortController();
    const call = client.request(get, stop.signal);
    await vi.waitFor(() => expect(server.requests).toHaveLength(1));
    stop.abort(new Error('stopping'));
    await expect(call).rejects.toThrow('stopping');
    await expect(client.request(get, stop.signal)).rejects.toThrow('stopping');
    expect(server.requests).toHaveLength(1);
  });

  test('a server that is not there is Unreachable', async () => {
    await server.close();
    expect(await failureOf(client.request(get))).toMatchObject({
      status: 0,
      reason: 'Unreachable',
    });
  });
});

describe('resources', () => {
  test.each([
    [{ group: '', version: 'v1', plural: 'pods' }, {}, undefined, '/api/v1/pods'],
    [
      { group: '', version: 'v1', plural: 'pods' },
      { namespace: 'a', name: 'b' },
      undefined,
      '/api/v1/namespaces/a/pods/b',
    ],
    [
      { group: 'x.io', version: 'v2', plural: 'things' },
      { name: 'b' },
      'status',
      '/apis/x.io/v2/things/b/status',
    ],
    [
      { group: 'x.io', version: 'v2', plural: 'things' },
      { namespace: 'a', name: '../secrets' },
      undefined,
      '/apis/x.io/v2/namespaces/a/things/..%2Fsecrets',
    ],
  ])('path of %o %o %s is %s', (type, ref, subresource, path) => {
    expect(resourcePath(type, ref, subresource)).toBe(path);
  });

  test('a list takes every page, or fails as a whole', async () => {
    const pods = createResource(client, PODS, (object) => object);
    handler = (request, response) => {
      const more = request.query.get('continue') === null ? 'next' : undefined;
      answerJson(response, 200, listBody([{ page: server.requests.length }], '9', more));
    };
    expect(await pods.list({ labelSelector: 'a=b' })).toEqual([{ page: 1 }, { page: 2 }]);
    handler = (request, response) =>
      request.query.get('continue') === null
        ? answerJson(response, 200, listBody([{}], '9', 'next'))
        : answerJson(response, 410, statusBody(410, 'Expired', 'continue token expired'));
    expect(await failureOf(pods.list({}))).toMatchObject({ reason: 'Gone' });
  });

  test('a delete carries its preconditions', async () => {
    const pods = createResource(client, PODS, (object) => object);
    handler = (_request, response) => answerJson(response, 200, {});
    await pods.delete({ namespace: 'a', name: 'b' }, { preconditions: { uid: 'u' } });
    expect(JSON.parse(server.requests[0]?.body ?? '')).toMatchObject({
      kind: 'DeleteOptions',
      preconditions: { uid: 'u' },
    });
  });
});
