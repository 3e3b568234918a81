/** Whatever comes over the wire, the answer is the contract's, and never a 500. */
import { reset } from 'cloudflare:test';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { errorBodySchema } from '#shared/wire/errors.ts';
import { edgeWith } from './edge-app.ts';
import { AGENT, CRAWLER, entry, type Send, send } from './requests.ts';

const STRANGE_NAMES = [
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
  '',
  '\u0000',
  '💥',
];
const STRANGE_VALUES = [
  null,
  true,
  '',
  '\ud800',
  -1,
  0,
  1e308,
  2 ** 53,
  Number.MAX_SAFE_INTEGER,
  'x'.repeat(5_000),
  '\u202e',
  "'; DROP TABLE leases; --",
];
const KNOWN_FIELDS = [
  'selector',
  'ttlSeconds',
  'target',
  'strategy',
  'result',
  'retryAfterSeconds',
  'sessionKey',
  'waitSeconds',
  'term',
  'session',
  'seq',
  'kind',
  'page',
  'upserts',
  'removes',
];

const jsonValues = fc.oneof(fc.constantFrom(...STRANGE_VALUES), fc.jsonValue({ maxDepth: 3 }));
const names = fc.oneof(fc.constantFrom(...STRANGE_NAMES, ...KNOWN_FIELDS), fc.string());
const objects = fc
  .array(fc.tuple(names, jsonValues), { maxLength: 6 })
  .map((pairs) => `{${pairs.map(([name, value]) => pair(name, value)).join(',')}}`);
/** JSON.stringify of an object would lose `__proto__`. */
const pair = (name: string, value: unknown) => `${JSON.stringify(name)}:${JSON.stringify(value)}`;

const valid = fc.constantFrom(
  JSON.stringify({ target: 'example.com', ttlSeconds: 1 }),
  JSON.stringify({ selector: { 'example.com/tier': '1' }, strategy: 'spread', sessionKey: 's' }),
  JSON.stringify({ waitSeconds: 0.01, ttlSeconds: 2 }),
  JSON.stringify({ result: 'banned', target: 'example.com' }),
  JSON.stringify({ term: 1, session: 'f', seq: 1, kind: 'full', upserts: [entry('f')] }),
  JSON.stringify({ term: 1, session: 'f', seq: 2, kind: 'delta', removes: ['uid-f'], basis: 1 }),
  JSON.stringify({ term: 2, session: 'g', seq: 1, kind: 'full', page: { index: 0, of: 2 } }),
);
/** A valid body with one character exchanged. */
const damaged = fc
  .tuple(valid, fc.nat(200), fc.string({ minLength: 1, maxLength: 2 }))
  .map(
    ([text, at, by]) => text.slice(0, at % text.length) + by + text.slice((at % text.length) + 1),
  );
const bodies = fc.oneof(objects, damaged, fc.json(), fc.string());

const segments = fc.oneof(
  fc.constantFrom('v1', 'leases', 'proxies', 'agents', 'sync', 'stats', 'echo', '..', '%', '%ff'),
  fc.constantFrom(...STRANGE_NAMES.map(encodeURIComponent)),
  fc.string({ maxLength: 20 }).map((text) => encodeURIComponent(text.toWellFormed())),
);
const queries = fc
  .array(
    fc.tuple(
      fc.oneof(
        names,
        names.map((name) => `attr.${name}`),
      ),
      fc.string(),
    ),
  )
  .map((pairs) => new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString());

const methods = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH');
const paths = fc.oneof(
  fc.array(segments, { maxLength: 6 }).map((parts) => `/${parts.join('/')}`),
  segments.map((segment) => `/v1/leases/${segment}`),
  segments.map((segment) => `/v1/leases/${segment}/renew`),
  segments.map((segment) => `/v1/leases/7.${segment}`),
  fc.constantFrom('/v1/proxies', '/openapi.json'),
);

/** Every route with a method of its own. */
const known = fc.constantFrom(
  ...([
    ['GET', '/healthz'],
    ['GET', '/v1/echo'],
    ['GET', '/openapi.json'],
    ['GET', '/v1/proxies'],
    ['GET', '/v1/stats'],
    ['POST', '/v1/leases'],
    ['GET', '/v1/leases/{id}'],
    ['POST', '/v1/leases/{id}/renew'],
    ['POST', '/v1/leases/{id}/report'],
    ['DELETE', '/v1/leases/0.nobody'],
    ['POST', '/v1/agents/alpha/sync'],
  ] as const),
);
const fields = fc.constantFrom(
  'authorization',
  'content-type',
  'content-encoding',
  'x-request-id',
  'idempotency-key',
  'cf-connecting-ip',
  'accept',
);
/**
 * Printable, or any ASCII but the line breaks. What is not ASCII is sent by
 * `test/integration/raw-requests.test.ts`, as the runtime here warns of each.
 */
const values = fc.oneof(
  fc.string({ maxLength: 50 }).map((text) => text.replace(/[^\x20-\x7e]/g, '')),
  fc
    .array(fc.integer({ min: 1, max: 126 }), { maxLength: 300 })
    .map((bytes) => String.fromCharCode(...bytes).replace(/[\r\n]/g, '')),
  fc.constantFrom(...STRANGE_NAMES.filter((name) => /^[\x20-\x7e]*$/.test(name))),
);

const AGENTS = `alpha=${AGENT}\nbeta=agent-beta-secret`;

/** The Worker as it is deployed, and one with four shards. */
const EDGES: Readonly<Record<string, () => Send>> = {
  'one shard': () => send,
  'four shards': () =>
    edgeWith(
      { DISCOVERY_TOKEN: CRAWLER, AGENT_TOKEN: AGENTS, LEASE_SHARDS: '4' },
      { clock: systemClock, random: Math.random },
    ).send,
};

for (const [name, edge] of Object.entries(EDGES)) {
  describe(`strange requests to an edge of ${name}`, () => {
    let to: Send = send;
    let leaseID = '';

    beforeAll(async () => {
      await reset();
      to = edge();
      const upserts = [entry('a', { maxLeases: 1_000_000 })];
      const json = { term: 1, session: 's', seq: 1, kind: 'full', upserts };
      await to('POST', '/v1/agents/alpha/sync', { token: AGENT, json });
      const held = await to('POST', '/v1/leases', { token: CRAWLER, json: { ttlSeconds: 3600 } });
      leaseID = String(held.body.leaseID);
    });

    async function expectContract(...args: Parameters<Send>): Promise<number> {
      const answer = await to(...args);
      const what = JSON.stringify(args).slice(0, 2_000);
      expect(answer.status, what).toBeLessThan(500);
      expect(answer.headers.get('x-request-id'), what).toBeTruthy();
      if (answer.status >= 400 && args[0] !== 'HEAD') errorBodySchema.parse(answer.body);
      return answer.status;
    }

    it('in the body of every route that takes one never cause a 500', async () => {
      const routes = () => [
        ['/v1/leases', CRAWLER],
        [`/v1/leases/${leaseID}/renew`, CRAWLER],
        [`/v1/leases/${leaseID}/report`, CRAWLER],
        // A cluster of its own: what is valid must not take the leases of the others away.
        ['/v1/agents/beta/sync', 'agent-beta-secret'],
      ];
      const seen = new Set<number>();
      await fc.assert(
        fc.asyncProperty(bodies, fc.nat(3), async (body, at) => {
          const [path = '', token = ''] = routes()[at] ?? [];
          const headers = { 'content-type': 'application/json' };
          seen.add(await expectContract('POST', path, { token, headers, body }));
        }),
        { numRuns: 600 },
      );
      expect(seen).toContain(400);
      expect(Math.min(...seen)).toBeLessThan(300);
    }, 120_000);

    it('in path, query and method never cause a 500', async () => {
      const seen = new Set<number>();
      await fc.assert(
        fc.asyncProperty(methods, paths, queries, async (method, path, query) => {
          seen.add(await expectContract(method, `${path}?${query}`, { token: CRAWLER }));
        }),
        { numRuns: 600 },
      );
      for (const status of [400, 404, 405]) expect(seen).toContain(status);
    }, 120_000);

    it('in headers, on every route, never cause a 500', async () => {
      const seen = new Set<number>();
      await fc.assert(
        fc.asyncProperty(known, fields, values, async ([method, path], field, value) => {
          const headers = { 'content-type': 'application/json', [field]: value };
          const body = method === 'POST' ? { body: '{}' } : {};
          const filled = path.replace('{id}', leaseID);
          const token = path.startsWith('/v1/agents') ? AGENT : CRAWLER;
          seen.add(await expectContract(method, filled, { token, headers, ...body }));
        }),
        { numRuns: 600 },
      );
      for (const status of [200, 201, 204, 400, 401, 415]) expect(seen).toContain(status);
    }, 120_000);
  });
}
