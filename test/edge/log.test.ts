import { env } from 'cloudflare:workers';
import { describe, expect, it, vi } from 'vitest';
import { createApp } from '#edge/app.ts';
import { readSettings } from '#edge/env.ts';
import { createLog } from '#edge/http/log.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { entry } from './requests.ts';

const SECRETS = ['crawl-secret', 'agent-secret', 'proxy-user', 'proxy-secret', 'query-secret'];
const credentials = { username: 'proxy-user', password: 'proxy-secret' };

interface Line {
  readonly level: string;
  readonly text: string;
  readonly fields: Record<string, unknown>;
}

function tracedApp(ledger = env.LEDGER.getByName('log-test')) {
  const lines: Line[] = [];
  const clock = new FakeClock();
  const app = createApp({
    settings: readSettings({ DISCOVERY_TOKEN: 'shop=crawl-secret', AGENT_TOKEN: 'agent-secret' }),
    ledger: () => ledger,
    clock,
    log: (level, msg, fields = {}) =>
      void lines.push({
        level,
        text: JSON.stringify({ msg, ...fields }),
        fields: { msg, ...fields },
      }),
  });
  const request = (method: string, path: string, token: string, json?: unknown) =>
    app.request(path, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
  return { request, lines };
}

describe('the log', () => {
  it('has one line per request with id, route, status, client and error code', async () => {
    const { request, lines } = tracedApp();
    const response = await request('GET', '/v1/leases/some-lease', 'crawl-secret');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      level: 'info',
      fields: {
        msg: 'request',
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

  it('says nothing about probes that go well', async () => {
    const { request, lines } = tracedApp();
    await request('GET', '/healthz', '');
    await request('GET', '/v1/echo', '');
    expect(lines).toEqual([]);
  });

  it('and the answers never show a token, credentials of a proxy or an id of a lease', async () => {
    const { request, lines } = tracedApp();
    const answers: string[] = [];
    const run = async (...args: Parameters<typeof request>) => {
      const response = await request(...args);
      answers.push(await response.clone().text());
      return response;
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
    const { leaseID } = await granted.json<{ leaseID: string }>();
    await run('POST', `/v1/leases/${leaseID}/report`, 'crawl-secret', { result: 'bad' });
    await run('DELETE', `/v1/leases/${leaseID}`, 'agent-secret');
    await run('POST', '/v1/leases', 'crawl-secret', { ttlSeconds: 'query-secret' });
    await run('GET', '/v1/proxies?limit=query-secret', 'crawl-secret');
    const broken = { ...entry('p'), credentials: { ...credentials, password: 7 } };
    await run('POST', '/v1/agents/c/sync', 'agent-secret', { ...full, upserts: [broken] });
    await run('GET', '/v1/stats', 'crawl-secret');
    await run('GET', '/v1/proxies', 'crawl-secret');
    const log = lines.map((line) => line.text).join('\n');
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
  const failing = (error: Error) => {
    const stub = env.LEDGER.getByName('log-test');
    return new Proxy(stub, { get: () => () => Promise.reject(error) });
  };

  it('is told to nobody and logged once with its cause', async () => {
    const { request, lines } = tracedApp(failing(new Error('row 17 is broken')));
    const response = await request('GET', '/v1/stats', 'crawl-secret');
    expect(response.status).toBe(500);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ error: 'internal' });
    expect(text).not.toContain('row 17');
    const causes = lines.filter((line) => line.text.includes('row 17 is broken'));
    expect(causes).toMatchObject([{ level: 'error', fields: { msg: 'request failed' } }]);
  });

  it('is 503 with Retry-After when the ledger is overloaded or has just gone away', async () => {
    for (const mark of ['overloaded', 'retryable']) {
      const error = Object.assign(new Error('from the runtime'), { [mark]: true });
      const { request } = tracedApp(failing(error));
      const response = await request('POST', '/v1/leases', 'crawl-secret', {});
      expect(response.status).toBe(503);
      expect(response.headers.get('retry-after')).toBe('1');
      expect(await response.json()).toMatchObject({ error: 'overloaded', retryAfterSeconds: 1 });
    }
  });
});
