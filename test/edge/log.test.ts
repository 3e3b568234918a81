import { describe, expect, it, vi } from 'vitest';
import type { AppDeps } from '#edge/app.ts';
import { createLog } from '#edge/http/log.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { edgeWith } from './edge-app.ts';
import { entry } from './requests.ts';

const SECRETS = ['crawl-secret', 'agent-secret', 'proxy-user', 'proxy-secret', 'query-secret'];
const credentials = { username: 'proxy-user', password: 'proxy-secret' };

function tracedApp(shard?: AppDeps['shard'], more: Readonly<Record<string, string>> = {}) {
  const vars = { ...more, DISCOVERY_TOKEN: 'shop=crawl-secret', AGENT_TOKEN: 'agent-secret' };
  const edge = edgeWith(vars, shard === undefined ? {} : { shard });
  const request = (method: string, path: string, token: string, json?: unknown) =>
    edge.send(method, path, { token, ...(json === undefined ? {} : { json }) });
  const text = () => edge.lines.map((line) => JSON.stringify(line)).join('\n');
  return { request, lines: edge.lines, text };
}

describe('the log', () => {
  it('has a line for a refused request with id, route, status, client and error code', async () => {
    const { request, lines } = tracedApp();
    const response = await request('GET', '/v1/leases/some-lease', 'crawl-secret');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      level: 'info',
      msg: 'request',
      fields: {
        requestId: response.headers.get('x-request-id'),
        method: 'GET',
        route: '/v1/leases/:id',
        status: 404,
        error: 'unknown_lease',
        client: 'shop',
        durationMs: 0,
      },
    });
  });

  it('is silent about what goes well, unless it is told to log all', async () => {
    const lease = async (more: Readonly<Record<string, string>>) => {
      const { request, lines } = tracedApp(undefined, more);
      await request('DELETE', '/v1/leases/0.none', 'crawl-secret');
      return lines.map(({ level, fields }) => ({ level, status: fields.status }));
    };
    expect(await lease({})).toEqual([]);
    expect(await lease({ LOG_REQUESTS: 'failures' })).toEqual([]);
    expect(await lease({ LOG_REQUESTS: 'all' })).toEqual([{ level: 'info', status: 204 }]);
  });

  it('says nothing about probes that go well', async () => {
    const { request, lines } = tracedApp(undefined, { LOG_REQUESTS: 'all' });
    await request('GET', '/healthz', '');
    await request('GET', '/v1/echo', '');
    expect(lines).toEqual([]);
  });

  it('and the answers never show a token, credentials of a proxy or an id of a lease', async () => {
    const { request, lines, text } = tracedApp(undefined, { LOG_REQUESTS: 'all' });
    const answers: string[] = [];
    const run = async (...args: Parameters<typeof request>) => {
      answers.push(JSON.stringify((await request(...args)).body));
    };
    const full = {
      term: 1,
      session: 's',
      seq: 1,
      kind: 'full',
      upserts: [entry('p', { credentials })],
    };
    await run('POST', '/v1/agents/c/sync', 'agent-secret', full);
    const granted = await request('POST', '/v1/leases', 'crawl-secret', {});
    const leaseID = String(granted.body.leaseID);
    await run('POST', `/v1/leases/${leaseID}/report`, 'crawl-secret', { result: 'bad' });
    await run('DELETE', `/v1/leases/${leaseID}`, 'agent-secret');
    await run('POST', '/v1/leases', 'crawl-secret', { ttlSeconds: 'query-secret' });
    await run('GET', '/v1/proxies?limit=query-secret', 'crawl-secret');
    const broken = { ...entry('p'), credentials: { ...credentials, password: 7 } };
    await run('POST', '/v1/agents/c/sync', 'agent-secret', { ...full, upserts: [broken] });
    await run('GET', '/v1/stats', 'crawl-secret');
    await run('GET', '/v1/proxies', 'crawl-secret');
    const log = text();
    expect(lines.length).toBeGreaterThan(8);
    for (const secret of [...SECRETS, leaseID]) {
      expect(log).not.toContain(secret);
      expect(answers.join('\n')).not.toContain(secret);
    }
  });

  it('is written as one JSON line each, errors and warnings to their own streams', () => {
    const written: [string, unknown][] = [];
    for (const method of ['log', 'warn', 'error'] as const) {
      vi.spyOn(console, method).mockImplementation((line) => void written.push([method, line]));
    }
    const log = createLog(new FakeClock(0));
    log('info', 'one\nline', { a: 1 });
    log('warn', 'w');
    log('error', 'e');
    vi.restoreAllMocks();
    const time = '1970-01-01T00:00:00.000Z';
    expect(written).toEqual([
      ['log', JSON.stringify({ level: 'info', time, msg: 'one\nline', a: 1 })],
      ['warn', JSON.stringify({ level: 'warn', time, msg: 'w' })],
      ['error', JSON.stringify({ level: 'error', time, msg: 'e' })],
    ]);
  });
});

describe('an error that nobody expected', () => {
  const failing = (error: Error) => () => ({ call: () => Promise.reject(error) });

  it('is told to nobody and logged once with its cause', async () => {
    const { request, lines } = tracedApp(failing(new Error('row 17 is broken')));
    const { status, body } = await request('GET', '/v1/stats', 'crawl-secret');
    expect(status).toBe(500);
    expect(body).toMatchObject({ error: 'internal' });
    expect(JSON.stringify(body)).not.toContain('row 17');
    const causes = lines.filter((line) => JSON.stringify(line).includes('row 17 is broken'));
    expect(causes).toMatchObject([{ level: 'error', msg: 'request failed' }]);
  });
});

describe('a ledger with too much to do', () => {
  it('is 503 with Retry-After, and its cause is in the line about the request', async () => {
    const error = Object.assign(new Error('from the runtime'), { overloaded: true });
    const { request, lines } = tracedApp(() => ({ call: () => Promise.reject(error) }));
    for (const [method, path] of [
      ['POST', '/v1/leases'],
      ['GET', '/v1/stats'],
      ['DELETE', '/v1/leases/0.x'],
    ] as const) {
      const { status, headers, body } = await request(method, path, 'crawl-secret');
      expect(status).toBe(503);
      expect(headers.get('retry-after')).toBe('1');
      expect(body).toMatchObject({ error: 'overloaded', retryAfterSeconds: 1 });
      expect(JSON.stringify(body)).not.toContain('from the runtime');
    }
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatchObject({
      level: 'error',
      msg: 'request',
      fields: { status: 503, error: 'overloaded', cause: 'from the runtime' },
    });
  });
});
