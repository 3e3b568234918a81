/** Whatever comes over the wire, the answer is the contract's, and never a 500. */
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { errorBodySchema } from '#shared/wire/errors.ts';
import { CRAWLER, entry, lease, send, syncFull } from './requests.ts';

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
  'term',
  'session',
  'seq',
  'kind',
  'page',
  'upserts',
  'removes',
];

const values = fc.oneof(fc.constantFrom(...STRANGE_VALUES), fc.jsonValue({ maxDepth: 3 }));
const names = fc.oneof(fc.constantFrom(...STRANGE_NAMES, ...KNOWN_FIELDS), fc.string());
const objects = fc
  .array(fc.tuple(names, values), { maxLength: 6 })
  .map((pairs) => `{${pairs.map(([name, value]) => pair(name, value)).join(',')}}`);
/** JSON.stringify of an object would lose `__proto__`. */
const pair = (name: string, value: unknown) => `${JSON.stringify(name)}:${JSON.stringify(value)}`;

const valid = fc.constantFrom(
  JSON.stringify({ target: 'example.com', ttlSeconds: 1 }),
  JSON.stringify({ result: 'banned', target: 'example.com' }),
  JSON.stringify({ term: 1, session: 'f', seq: 1, kind: 'full', upserts: [entry('f')] }),
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

async function expectContract(...args: Parameters<typeof send>): Promise<number> {
  const answer = await send(...args);
  const what = JSON.stringify(args).slice(0, 2_000);
  expect(answer.status, what).toBeLessThan(500);
  expect(answer.headers.get('x-request-id'), what).toBeTruthy();
  if (answer.status >= 400 && args[0] !== 'HEAD') errorBodySchema.parse(answer.body);
  return answer.status;
}

describe('strange requests', () => {
  let leaseID = '';
  beforeAll(async () => {
    await syncFull(entry('a', { maxLeases: 1_000_000 }));
    leaseID = (await lease({ ttlSeconds: 3600 })).id;
  });

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
    const methods = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH');
    const paths = fc.oneof(
      fc.array(segments, { maxLength: 6 }).map((parts) => `/${parts.join('/')}`),
      segments.map((segment) => `/v1/leases/${segment}`),
      segments.map((segment) => `/v1/leases/${segment}/renew`),
      fc.constant('/v1/proxies'),
    );
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(methods, paths, queries, async (method, path, query) => {
        seen.add(await expectContract(method, `${path}?${query}`, { token: CRAWLER }));
      }),
      { numRuns: 600 },
    );
    for (const status of [400, 404, 405]) expect(seen).toContain(status);
  }, 120_000);

  it('in headers never cause a 500', async () => {
    const header = fc.string({ maxLength: 50 }).map((text) => text.replace(/[^\x20-\x7e]/g, ''));
    const fields = fc.constantFrom(
      'authorization',
      'content-type',
      'content-encoding',
      'x-request-id',
      'cf-connecting-ip',
      'accept',
    );
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(fields, header, async (field, value) => {
        const headers = { 'content-type': 'application/json', [field]: value };
        const options = { token: CRAWLER, headers, body: '{}' };
        seen.add(await expectContract('POST', '/v1/leases', options));
      }),
      { numRuns: 200 },
    );
    for (const status of [201, 401, 415]) expect(seen).toContain(status);
  }, 120_000);
});
