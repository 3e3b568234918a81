/** What the edge answers is what its description says, route by route and refusal by refusal. */
import { reset } from 'cloudflare:test';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ERROR_STATUS, type ErrorCode } from '#shared/wire/errors.ts';
import { type EdgeUnderTest, edgeWith } from './edge-app.ts';
import { AGENT, type Answer, CRAWLER, entry, type RequestOptions, send } from './requests.ts';

interface Operation {
  readonly operationId: string;
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, object>> }>
  >;
}
interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

const TOKENS = { DISCOVERY_TOKEN: CRAWLER, AGENT_TOKEN: AGENT };
const SYNC = '/v1/agents/{cluster}/sync';
const full = { term: 1, session: 's', seq: 1, kind: 'full', upserts: [] as unknown[] };
const json = (body: unknown): RequestOptions => ({ json: body });

let document: Document;
let validate: (pointer: string, value: unknown) => string[];
/** What was seen of each operation: codes of refusals, statuses of successes. */
const seen = new Map<string, Set<string>>();

/** Sends a request to `path`, a template of the document, and holds the answer against it. */
async function check(
  edge: Pick<EdgeUnderTest, 'send'>,
  method: string,
  path: string,
  options: RequestOptions & { readonly id?: string; readonly query?: string } = {},
): Promise<Answer> {
  const { id = '0.nobody', query = '', ...request } = options;
  const token = 'token' in request ? request.token : path === SYNC ? AGENT : CRAWLER;
  const filled = path.replace('{id}', id).replace('{cluster}', 'alpha');
  const answer = await edge.send(method, `${filled}${query}`, { ...request, token });
  const operation = document.paths[path]?.[method.toLowerCase()];
  const response = operation?.responses[answer.status];
  const what = `${method} ${path} ${answer.status} ${JSON.stringify(answer.body)}`;
  if (operation === undefined || response === undefined) throw new Error(`not described: ${what}`);
  const code = String(answer.body.error ?? answer.status);
  seen.set(operation.operationId, (seen.get(operation.operationId) ?? new Set()).add(code));
  if (response.content?.['application/json'] !== undefined) {
    const place = ['paths', path, method.toLowerCase(), 'responses', answer.status, 'content'];
    expect(validate(pointer([...place, 'application/json', 'schema']), answer.body), what).toEqual(
      [],
    );
  }
  return answer;
}

function pointer(parts: readonly (string | number)[]): string {
  const escaped = parts.map((part) => String(part).replaceAll('~', '~0').replaceAll('/', '~1'));
  return `#/${escaped.map(encodeURIComponent).join('/')}`;
}

/** What the document does not name must not be answered: closes its objects, as far as it has any. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, closed(value)]),
  );
  const isOpen = inner.type === 'object' && 'properties' in inner;
  return isOpen && !('additionalProperties' in inner)
    ? { ...inner, additionalProperties: false }
    : inner;
}

beforeAll(async () => {
  await reset();
  const answer = await send('GET', '/openapi.json');
  document = answer.body as unknown as Document;
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats(ajv);
  ajv.addSchema({ ...(closed(answer.body) as object), $id: 'edge' });
  validate = (at, value) => {
    const run = ajv.getSchema(`edge${at}`);
    if (run === undefined) throw new Error(`no schema at ${at}`);
    return run(value) === true
      ? []
      : (run.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  };
});

describe('GET /openapi.json', () => {
  it('is OpenAPI 3.1, open to all, and describes every route', async () => {
    expect(document.openapi).toBe('3.1.0');
    const routes = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.keys(operations).map((method) => `${method} ${path}`),
    );
    expect(routes.sort()).toEqual([
      'delete /v1/leases/{id}',
      'get /healthz',
      'get /openapi.json',
      'get /v1/echo',
      'get /v1/leases/{id}',
      'get /v1/proxies',
      'get /v1/stats',
      'post /v1/agents/{cluster}/sync',
      'post /v1/leases',
      'post /v1/leases/{id}/renew',
      'post /v1/leases/{id}/report',
    ]);
  });
});

describe('the check of an answer', () => {
  it('refuses one that lacks a field, has one too many, or another type', () => {
    const place = ['paths', '/v1/leases/{id}', 'get', 'responses', 404, 'content'];
    const at = pointer([...place, 'application/json', 'schema']);
    const refusal = { error: 'unknown_lease', message: 'm', requestId: 'r' };
    expect(validate(at, refusal)).toEqual([]);
    for (const wrong of [{ ...refusal, error: 'other' }, { ...refusal, more: 1 }, { error: 1 }]) {
      expect(validate(at, wrong)).not.toEqual([]);
    }
  });
});

describe('a live answer is as described', () => {
  const edge = () => edgeWith(TOKENS);

  it('when all goes well', async () => {
    await check(edge(), 'GET', '/healthz');
    await check(edge(), 'GET', '/v1/echo');
    await check(edge(), 'GET', '/openapi.json');
    const upserts = [
      entry('a', {
        credentials: { username: 'u', password: 'p' },
        egressIP: '192.0.2.1',
        latencyMillis: 3,
        attributes: { region: 'eu' },
      }),
      entry('b'),
    ];
    await check(edge(), 'POST', SYNC, json({ ...full, upserts }));
    const wish = { target: 'shop.example', selector: { region: 'eu' }, sessionKey: 's' };
    const lease = await check(edge(), 'POST', '/v1/leases', json(wish));
    expect(lease.status).toBe(201);
    const id = String(lease.body.leaseID);
    await check(edge(), 'GET', '/v1/leases/{id}', { id });
    await check(edge(), 'POST', '/v1/leases/{id}/renew', { id, json: { ttlSeconds: 60 } });
    await check(edge(), 'POST', '/v1/leases/{id}/report', { id, json: { result: 'banned' } });
    const listed = await check(edge(), 'GET', '/v1/proxies', { query: '?limit=1' });
    expect(listed.body).toHaveProperty('nextCursor');
    const stats = await check(edge(), 'GET', '/v1/stats');
    expect(stats.body).toMatchObject({ clients: [{ name: 'default' }], agents: [{}] });
    await check(edge(), 'DELETE', '/v1/leases/{id}', { id });
    await check(edge(), 'POST', SYNC, json({ ...full, kind: 'heartbeat', seq: 2 }));
  });

  it('when the request is at fault', async () => {
    const lease = '/v1/leases';
    await check(edge(), 'POST', lease, json({ ttlSeconds: 0 }));
    await check(edge(), 'POST', lease, json({ ttlSeconds: 9_999 }));
    await check(edge(), 'POST', lease, { headers: { 'idempotency-key': '' }, json: {} });
    await check(edge(), 'POST', lease, { body: 'x', headers: { 'content-type': 'text/plain' } });
    await check(edge(), 'POST', lease, json({ target: 'x'.repeat(70_000) }));
    await check(edge(), 'POST', '/v1/leases/{id}/renew', json({ ttlSeconds: 'x' }));
    await check(edge(), 'POST', '/v1/leases/{id}/renew', json({ ttlSeconds: 9_999 }));
    await check(edge(), 'POST', '/v1/leases/{id}/report', json({ result: 'slow' }));
    await check(edge(), 'POST', '/v1/leases/{id}/report', json({ result: 'ok', target: ':' }));
    await check(edge(), 'GET', '/v1/proxies', { query: '?limit=x' });
    await check(edge(), 'POST', SYNC, json({}));
    await check(edge(), 'POST', SYNC, { body: 'x', headers: { 'content-type': 'text/plain' } });
    const huge = { body: ' '.repeat(8 * 1024 * 1024 + 1) };
    const headers = { 'content-type': 'application/json' };
    await check(edge(), 'POST', SYNC, { ...huge, headers });
  });

  it('when the caller may not', async () => {
    const strict = edgeWith({ ...TOKENS, AGENT_TOKEN: `beta=${AGENT}` });
    await check(strict, 'POST', SYNC, json(full));
    const silent = edgeWith({});
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const method of Object.keys(operations)) {
        const upper = method.toUpperCase();
        await check(edge(), upper, path, { token: 'wrong' });
        await check(silent, upper, path);
        await check(edgeWith({ LEASE_SHARDS: 'x' }), upper, path);
      }
    }
  });

  it('when there is nothing, or no longer', async () => {
    await check(edge(), 'POST', SYNC, json({ ...full, session: 't', upserts: [entry('a')] }));
    await check(edge(), 'GET', '/v1/leases/{id}');
    await check(edge(), 'POST', '/v1/leases/{id}/renew', json({}));
    await check(edge(), 'POST', '/v1/leases/{id}/report', json({ result: 'ok' }));
    await check(edge(), 'POST', '/v1/leases', json({ selector: { no: 'where' } }));
    const gone = await check(edge(), 'POST', '/v1/leases', json({}));
    await check(edge(), 'POST', SYNC, json({ ...full, session: 't', seq: 2 }));
    await check(edge(), 'POST', '/v1/leases/{id}/renew', {
      ...json({}),
      id: String(gone.body.leaseID),
    });
    await check(edge(), 'POST', SYNC, json({ ...full, kind: 'delta', seq: 9 }));
    await check(edge(), 'POST', SYNC, json({ ...full, term: 0 }));
  });

  it('when a key is used twice, or a client wants too much', async () => {
    await check(edge(), 'POST', SYNC, json({ ...full, session: 'u', upserts: [entry('a')] }));
    const headers = { 'idempotency-key': 'k' };
    await check(edge(), 'POST', '/v1/leases', { headers, json: {} });
    await check(edge(), 'POST', '/v1/leases', { headers, json: { ttlSeconds: 5 } });
    const few = edgeWith({ ...TOKENS, CLIENT_LIMITS: 'default leases=1' });
    await check(few, 'POST', '/v1/leases', json({}));
    const slow = edgeWith({ ...TOKENS, CLIENT_LIMITS: 'default rate=0.001' });
    const routes: [string, string, unknown?][] = [
      ['GET', '/v1/stats'],
      ['GET', '/v1/proxies'],
      ['POST', '/v1/leases', {}],
      ['GET', '/v1/leases/{id}'],
      ['POST', '/v1/leases/{id}/renew', {}],
      ['POST', '/v1/leases/{id}/report', { result: 'ok' }],
    ];
    for (const [method, path, body] of [...routes, ...routes]) {
      await check(slow, method, path, body === undefined ? {} : json(body));
    }
    expect((await check(slow, 'DELETE', '/v1/leases/{id}')).status).toBe(204);
  });

  it('when the ledger cannot', async () => {
    const failing = (shard: () => Promise<never>) =>
      edgeWith(TOKENS, { shard: () => ({ call: shard }) });
    const busy = () => Promise.reject(Object.assign(new Error('busy'), { overloaded: true }));
    const broken = () => Promise.reject(new Error('broken'));
    const valid: Record<string, unknown> = { report: { result: 'ok' }, sync: full };
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const method of Object.keys(operations)) {
        const body = method === 'post' ? json(valid[path.split('/').at(-1) ?? ''] ?? {}) : {};
        await check(failing(busy), method.toUpperCase(), path, body);
        await check(failing(broken), method.toUpperCase(), path, body);
      }
    }
    const refusing = (value: object) =>
      edgeWith(TOKENS, { shard: () => ({ call: async () => ({ ok: true, value }) as never }) });
    const full429 = refusing({ ok: false, code: 'queue_full', retryAfterSeconds: 3 });
    const answer = await check(full429, 'POST', '/v1/leases', json({ waitSeconds: 1 }));
    expect(answer.headers.get('retry-after')).toBe('3');
    const noRoom = refusing({ ok: false, code: 'inventory_full', reason: 'at most 1 fits' });
    await check(noRoom, 'POST', SYNC, json(full));
    const expired = refusing({ ok: false, code: 'lease_expired' });
    await check(expired, 'POST', '/v1/leases/{id}/renew', json({}));
  });

  afterAll(() => {
    // Every code that the API has was answered and found as described; two belong to no route.
    const codes = new Set([...seen.values()].flatMap((one) => [...one]));
    const all = Object.keys(ERROR_STATUS) as ErrorCode[];
    expect(all.filter((code) => !codes.has(code))).toEqual(['not_found', 'method_not_allowed']);
  });
});
