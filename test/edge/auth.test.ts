import { describe, expect, it } from 'vitest';
import { readSettings } from '#edge/env.ts';
import { edgeWith } from './edge-app.ts';
import { AGENT, CRAWLER, send } from './requests.ts';

const CRAWLER_ROUTES = [
  ['GET', '/v1/proxies'],
  ['GET', '/v1/stats'],
  ['POST', '/v1/leases'],
  ['GET', '/v1/leases/x'],
  ['DELETE', '/v1/leases/x'],
  ['POST', '/v1/leases/x/renew'],
  ['POST', '/v1/leases/x/report'],
] as const;
const AGENT_ROUTE = ['POST', '/v1/agents/alpha/sync'] as const;

function appWith(vars: Record<string, string>) {
  const edge = edgeWith(vars);
  const request = (method: string, path: string, token?: string) =>
    edge.send(method, path, { token });
  return { request, lines: edge.lines };
}

describe('a protected route', () => {
  for (const [method, path] of [...CRAWLER_ROUTES, AGENT_ROUTE]) {
    it(`${method} ${path} refuses no token, a wrong one and one of the other kind`, async () => {
      const foreign = path === AGENT_ROUTE[1] ? CRAWLER : AGENT;
      for (const token of [undefined, 'wrong', '', foreign, `${CRAWLER}x`, CRAWLER.slice(1)]) {
        const answer = await send(method, path, { token });
        expect(answer).toMatchObject({ status: 401, body: { error: 'unauthorized' } });
        expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer realm=/);
      }
    });
  }

  it('takes the scheme in any case, and no other scheme', async () => {
    const get = (authorization: string) =>
      send('GET', '/v1/stats', { headers: { authorization } }).then(({ status }) => status);
    expect(await get(`bearer ${CRAWLER}`)).toBe(200);
    expect(await get(`BEARER   ${CRAWLER}`)).toBe(200);
    expect(await get(`Basic ${CRAWLER}`)).toBe(401);
    expect(await get(CRAWLER)).toBe(401);
    expect(await get(`Bearer ${CRAWLER} ${CRAWLER}`)).toBe(401);
  });

  it('opens to every one of several named tokens', async () => {
    for (const token of ['crawler-one-secret', 'crawler-two-secret']) {
      expect((await send('GET', '/v1/stats', { token })).status).toBe(200);
    }
    expect((await send('GET', '/v1/stats', { token: 'one=crawler-one-secret' })).status).toBe(401);
  });

  it('is opened by no token that begins with one, ends with one, or is padded to one', async () => {
    const short = edgeWith({ DISCOVERY_TOKEN: 'a=abc\nb=abcd-and-much-longer\nc=ünï' });
    const status = async (token: string) =>
      (await short.send('GET', '/v1/stats', { token })).status;
    for (const token of ['abc', 'abcd-and-much-longer']) expect(await status(token)).toBe(200);
    for (const token of ['ab', 'abcd', 'abcd-and-much-longer!', 'abc%00', 'x'.repeat(10_000)]) {
      expect(await status(token)).toBe(401);
    }
  });

  it('looks at the token before the body', async () => {
    const answer = await send('POST', '/v1/leases', { token: 'wrong', body: 'x'.repeat(100_000) });
    expect(answer.status).toBe(401);
  });
});

describe('an agent token', () => {
  it('with a name speaks for its own cluster alone', async () => {
    const json = { term: 1, session: 's', seq: 1, kind: 'full' };
    const path = '/v1/agents/beta/sync';
    const foreign = await send('POST', path, { token: AGENT, json });
    expect(foreign).toMatchObject({ status: 403, body: { error: 'forbidden' } });
    expect((await send('POST', path, { token: 'agent-beta-secret', json })).status).toBe(200);
  });

  it('without a name speaks for every cluster', async () => {
    const { request } = appWith({ DISCOVERY_TOKEN: 'c', AGENT_TOKEN: 'a' });
    for (const cluster of ['x', 'y']) {
      // Past the token: the empty body lacks all fields of a sync.
      expect((await request('POST', `/v1/agents/${cluster}/sync`, 'a')).status).toBe(400);
    }
    expect((await request('POST', '/v1/agents/-x/sync', 'a')).status).toBe(400);
  });
});

describe('an edge without tokens', () => {
  it('answers 503 on every protected route and serves the open ones', async () => {
    const { request } = appWith({});
    for (const [method, path] of [...CRAWLER_ROUTES, AGENT_ROUTE]) {
      const answer = await request(method, path, 'any');
      expect(answer).toMatchObject({ status: 503, body: { error: 'auth_not_configured' } });
    }
    expect((await request('GET', '/healthz')).status).toBe(200);
    expect((await request('GET', '/v1/echo')).status).toBe(200);
  });

  it('serves crawlers when that is allowed, says so loudly, and never serves agents', async () => {
    const { request, lines } = appWith({ ALLOW_ANONYMOUS: 'true' });
    expect(lines).toMatchObject([{ level: 'warn', msg: 'ALLOW_ANONYMOUS is "true"' }]);
    expect((await request('GET', '/v1/proxies')).status).toBe(200);
    expect((await request(...AGENT_ROUTE)).status).toBe(503);
  });

  it('does not let ALLOW_ANONYMOUS open what has a token', async () => {
    const { request } = appWith({ ALLOW_ANONYMOUS: 'true', DISCOVERY_TOKEN: 'secret' });
    expect((await request('GET', '/v1/proxies')).status).toBe(401);
  });
});

describe('faulty settings', () => {
  it('make every answer a 500, with the reasons in the log and no secret anywhere', async () => {
    const { request, lines } = appWith({
      DISCOVERY_TOKEN: 'one=hidden-a\nhidden-b',
      COOLDOWN_SECONDS: '5m',
      LEASE_SHARDS: '65',
      CLIENT_LIMITS: 'hidden-c',
    });
    for (const path of ['/healthz', '/v1/stats', '/nope']) {
      const answer = await request('GET', path);
      expect(answer).toMatchObject({ status: 500, body: { error: 'misconfigured' } });
    }
    const log = JSON.stringify(lines);
    expect(log).toContain('DISCOVERY_TOKEN: line 2 is not name=token');
    expect(log).toContain('COOLDOWN_SECONDS: must be a whole number of seconds');
    expect(log).toContain('LEASE_SHARDS: must be at most 64');
    expect(log).toContain('CLIENT_LIMITS: line 1 is not of the form');
    expect(log).not.toContain('hidden');
  });

  const faults: [Record<string, string>, string][] = [
    [{ DISCOVERY_TOKEN: 'two words' }, 'DISCOVERY_TOKEN: the token has a space in it'],
    [{ DISCOVERY_TOKEN: 'a=1\na=2' }, 'DISCOVERY_TOKEN: a name occurs twice'],
    [{ DISCOVERY_TOKEN: 'a=1\nb=1' }, 'DISCOVERY_TOKEN: a token occurs twice'],
    [
      { DISCOVERY_TOKEN: 'a=same', AGENT_TOKEN: 'same' },
      'AGENT_TOKEN: must not contain a token of DISCOVERY_TOKEN',
    ],
    [
      { DEFAULT_LEASE_TTL_SECONDS: '10', MAX_LEASE_TTL_SECONDS: '9' },
      'DEFAULT_LEASE_TTL_SECONDS: must not be above MAX_LEASE_TTL_SECONDS',
    ],
    [
      { COOLDOWN_SECONDS: '10', MAX_COOLDOWN_SECONDS: '9' },
      'COOLDOWN_SECONDS: must not be above MAX_COOLDOWN_SECONDS',
    ],
    [{ AGENT_STALE_SECONDS: '0' }, 'AGENT_STALE_SECONDS: must be a whole number of seconds'],
    [{ LEASE_SHARDS: '0' }, 'LEASE_SHARDS: must be a whole number, 1 to 64'],
    [{ LEASE_SHARDS: '2.5' }, 'LEASE_SHARDS: must be a whole number, 1 to 64'],
    [{ DISCOVERY_TOKEN: 'default=1' }, 'DISCOVERY_TOKEN: the name default is reserved'],
    [{ DISCOVERY_TOKEN: 'a=1\nanonymous=2' }, 'DISCOVERY_TOKEN: the name anonymous is reserved'],
    [
      { DISCOVERY_TOKEN: 'a=1', CLIENT_LIMITS: 'a rate=1\nb rate=1' },
      'CLIENT_LIMITS: line 2 names no token of DISCOVERY_TOKEN',
    ],
    [
      { DISCOVERY_TOKEN: 'a=1', ALLOW_ANONYMOUS: 'true', CLIENT_LIMITS: 'anonymous rate=1' },
      'CLIENT_LIMITS: line 1 names no token of DISCOVERY_TOKEN',
    ],
  ];
  for (const [vars, problem] of faults) {
    it(`name ${problem}`, () => {
      const result = readSettings(vars);
      expect(result.ok ? [] : result.problems.join()).toContain(problem);
    });
  }

  it('are not those of a client without a name, or of everybody', () => {
    for (const vars of [
      { DISCOVERY_TOKEN: 'secret', CLIENT_LIMITS: 'default rate=1' },
      { ALLOW_ANONYMOUS: 'true', CLIENT_LIMITS: 'anonymous leases=1' },
      { CLIENT_LIMITS: '* leases=1' },
      { AGENT_TOKEN: 'default=of-a-cluster-of-this-name' },
    ]) {
      expect(readSettings(vars)).toMatchObject({ ok: true });
    }
  });

  it('are not those of a token that ends in equals signs, or comes with blank lines', () => {
    for (const text of ['c2VjcmV0IQ==', '\n c2VjcmV0IQ== \r\n\n']) {
      const result = readSettings({ DISCOVERY_TOKEN: text });
      const tokens = [{ name: undefined, token: 'c2VjcmV0IQ==' }];
      expect(result).toMatchObject({ ok: true, settings: { crawlerTokens: tokens } });
    }
    const named = readSettings({ DISCOVERY_TOKEN: 'a = c2VjcmV0IQ==\r\nb=x' });
    expect(named).toMatchObject({
      settings: {
        crawlerTokens: [
          { name: 'a', token: 'c2VjcmV0IQ==' },
          { name: 'b', token: 'x' },
        ],
      },
    });
  });
});
