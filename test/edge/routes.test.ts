import { reset } from 'cloudflare:test';
import { beforeEach, describe, expect, it } from 'vitest';
import { edgeWith } from './edge-app.ts';
import { CRAWLER, crawl, entry, send, syncFull } from './requests.ts';

beforeEach(() => reset());

describe('GET /healthz', () => {
  it('answers ok without credentials', async () => {
    expect(await send('GET', '/healthz')).toMatchObject({ status: 200, body: { text: 'ok' } });
  });
});

describe('GET /v1/echo', () => {
  it('tells the address of the caller, and is never cached', async () => {
    const headers = { 'cf-connecting-ip': '192.0.2.9' };
    const answer = await send('GET', '/v1/echo', { headers });
    expect(answer.body).toMatchObject({ ip: '192.0.2.9' });
    expect(Object.keys(answer.body).sort()).toEqual(['asn', 'colo', 'country', 'ip']);
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  it('takes country, network and colo from the platform, null where it knows none', async () => {
    const edge = edgeWith({});
    const echo = async (cf?: object) => {
      const request = new Request('https://edge.example/v1/echo');
      if (cf !== undefined) Object.defineProperty(request, 'cf', { value: cf });
      return (await edge.fetch(request)).json();
    };
    const unknown = { ip: '', country: null, asn: null, colo: null };
    expect(await echo()).toEqual(unknown);
    expect(await echo({ country: 'NZ', asn: 64500, colo: 'AKL' })).toEqual({
      ip: '',
      country: 'NZ',
      asn: 64500,
      colo: 'AKL',
    });
    expect(await echo({ country: 7, asn: 'AS1' })).toEqual(unknown);
    for (const [clientIp, ip] of [
      ['192.0.2.1:4711', '192.0.2.1'],
      ['[2001:db8::1]:4711', '2001:db8::1'],
    ]) {
      expect(await echo({ clientIp })).toMatchObject({ ip });
    }
  });
});

describe('GET /v1/proxies', () => {
  const fleet = [
    entry('a', { attributes: { region: 'eu', 'example.com/tier': '1' }, egressIP: '192.0.2.1' }),
    entry('b', { attributes: { region: 'eu' }, latencyMillis: 4 }),
    entry('c', { attributes: { region: 'us' }, healthy: false, leasable: false, draining: true }),
  ];
  const names = ({ body }: { body: Record<string, unknown> }) =>
    Array.isArray(body.proxies) ? body.proxies.map((p: { name: string }) => p.name) : undefined;

  it('lists nothing as an empty list', async () => {
    const answer = await crawl('GET', '/v1/proxies');
    expect(answer).toMatchObject({ status: 200, body: { proxies: [], count: 0 } });
  });

  it('tells all of a proxy but its credentials', async () => {
    await syncFull(...fleet);
    const { body } = await crawl('GET', '/v1/proxies?attr.region=us');
    expect(body).toEqual({
      count: 1,
      proxies: [
        {
          cluster: 'alpha',
          namespace: 'crawl',
          name: 'c',
          host: 'c.example',
          port: 3128,
          protocol: 'http',
          attributes: { region: 'us' },
          healthy: false,
          activeLeases: 0,
          maxLeases: 10,
          leasable: false,
          draining: true,
        },
      ],
    });
  });

  const queries: [string, string[]][] = [
    ['', ['a', 'b', 'c']],
    ['?healthy=true', ['a', 'b']],
    ['?healthy=false', ['c']],
    ['?attr.region=eu', ['a', 'b']],
    ['?attr.region=eu&attr.example.com/tier=1', ['a']],
    ['?attr.region=eu&attr.example.com%2Ftier=2', []],
    ['?attr.region=eu&healthy=false', []],
    ['?limit=1000', ['a', 'b', 'c']],
  ];
  for (const [query, expected] of queries) {
    it(`${query || 'without a query'} lists ${expected.join(', ') || 'nothing'}`, async () => {
      await syncFull(...fleet);
      const answer = await crawl('GET', `/v1/proxies${query}`);
      expect(names(answer)).toEqual(expected);
      expect(answer.body.count).toBe(expected.length);
    });
  }

  it('goes through pages by cursor, counting all that match', async () => {
    await syncFull(...fleet);
    const first = await crawl('GET', '/v1/proxies?limit=2');
    expect(names(first)).toEqual(['a', 'b']);
    expect(first.body.count).toBe(3);
    const cursor = String(first.body.nextCursor);
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
    const second = await crawl('GET', `/v1/proxies?limit=2&cursor=${cursor}`);
    expect(names(second)).toEqual(['c']);
    expect(second.body).not.toHaveProperty('nextCursor');
  });

  const faults: [string, string][] = [
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['healthy=yes', 'healthy'],
    ['cursor=zzz', 'cursor'],
    ['cursor=e30', 'cursor'],
    ['cursor=', 'cursor'],
    ['attr.=x', 'attr.'],
    ['attr.__proto__=x', 'attr.__proto__'],
    ['attr.k=not%20a%20label', 'attr.k'],
    ['attr.k=a&attr.k=b', 'attr.k'],
    ['attrs.k=a', 'attrs.k'],
    ['region=eu', 'region'],
    ['__proto__=1', '__proto__'],
  ];
  for (const [query, field] of faults) {
    it(`refuses ${query}`, async () => {
      const answer = await crawl('GET', `/v1/proxies?${query}`);
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request', field } });
    });
  }
});

describe('GET /v1/stats', () => {
  it('counts proxies by state, leases, cooldowns and agents', async () => {
    await syncFull(entry('a'), entry('b', { healthy: null }), entry('c', { draining: true }));
    await crawl('POST', '/v1/leases', {});
    const { body } = await crawl('GET', '/v1/stats');
    expect(body).toMatchObject({
      proxies: { total: 3, healthy: 2, unhealthy: 1, stale: 0, cordoned: 0, draining: 1 },
      leases: { active: 1 },
      cooldowns: 0,
      agents: [{ cluster: 'alpha', term: 1, proxies: 3, stale: false }],
    });
  });
});

describe('routes and methods', () => {
  it('answer 404 for an unknown path, with or without credentials', async () => {
    for (const path of ['/v1', '/v1/lease', '/v1/leases/', '/v1/leases/x/y', '/V1/stats', '/%00']) {
      for (const token of [undefined, CRAWLER]) {
        const answer = await send('GET', path, { token });
        expect(answer).toMatchObject({ status: 404, body: { error: 'not_found' } });
      }
    }
  });

  const allowed: [string, string][] = [
    ['/healthz', 'GET, HEAD, OPTIONS'],
    ['/v1/echo', 'GET, HEAD, OPTIONS'],
    ['/v1/proxies', 'GET, HEAD, OPTIONS'],
    ['/v1/stats', 'GET, HEAD, OPTIONS'],
    ['/openapi.json', 'GET, HEAD, OPTIONS'],
    ['/v1/leases', 'OPTIONS, POST'],
    ['/v1/leases/x', 'DELETE, GET, HEAD, OPTIONS'],
    ['/v1/leases/x/renew', 'OPTIONS, POST'],
    ['/v1/leases/x/report', 'OPTIONS, POST'],
    ['/v1/agents/x/sync', 'OPTIONS, POST'],
  ];
  for (const [path, allow] of allowed) {
    it(`${path} takes ${allow} and answers 405 to the others`, async () => {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
        const answer = await send(method, path);
        expect(answer.status === 405).toBe(!allow.split(', ').includes(method));
        if (answer.status === 405) expect(answer.headers.get('allow')).toBe(allow);
      }
      const options = await send('OPTIONS', path);
      expect(options.status).toBe(204);
      expect(options.headers.get('allow')).toBe(allow);
    });
  }

  it('answer HEAD as GET without a body', async () => {
    const answer = await send('HEAD', '/healthz');
    expect(answer).toMatchObject({ status: 200, body: { text: '' } });
  });
});

describe('the body of a crawler', () => {
  const post = (body: BodyInit, headers: Record<string, string>) =>
    send('POST', '/v1/leases', { token: CRAWLER, headers, body });
  const json = { 'content-type': 'application/json' };

  it('must be declared as JSON', async () => {
    for (const contentType of ['text/plain', 'application/x-www-form-urlencoded', '', 'json']) {
      const answer = await post('{}', { 'content-type': contentType });
      expect(answer).toMatchObject({ status: 415, body: { error: 'unsupported_media_type' } });
    }
    const bytes = await post(new TextEncoder().encode('{}'), {});
    expect(bytes.status).toBe(415);
  });

  it('may name its charset and write its type in any case', async () => {
    const answer = await post('{}', { 'content-type': 'Application/JSON; charset=utf-8' });
    expect(answer.status).toBe(409);
  });

  it('may not be compressed', async () => {
    const answer = await post('{}', { ...json, 'content-encoding': 'gzip' });
    expect(answer.status).toBe(415);
  });

  it('must be valid JSON in valid UTF-8', async () => {
    const bodies = ['{', '{"a":}', 'nul', '\u0000', new Uint8Array([0x22, 0xff, 0x22])];
    for (const body of bodies) {
      const answer = await post(body, json);
      expect(answer).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    }
  });

  it('has 64 KiB at most, announced or not', async () => {
    const text = '{}'.padEnd(64 * 1024, ' ');
    expect((await post(text, json)).status).toBe(409);
    const stream = (body: string) => new Blob([body]).stream();
    expect((await post(stream(text), json)).status).toBe(409);
    for (const body of [`${text} `, stream(`${text} `)]) {
      const answer = await post(body, json);
      expect(answer).toMatchObject({ status: 413, body: { error: 'payload_too_large' } });
    }
  });
});

describe('the request id', () => {
  it('is taken over from the caller, in header and body', async () => {
    const headers = { 'x-request-id': 'crawl-7.4:a_b' };
    const answer = await send('GET', '/nope', { headers });
    expect(answer.headers.get('x-request-id')).toBe('crawl-7.4:a_b');
    expect(answer.body.requestId).toBe('crawl-7.4:a_b');
  });

  it('is made anew when the caller has none or a strange one', async () => {
    for (const id of ['', 'a b', '<script>', 'x'.repeat(129), '"']) {
      const answer = await send('GET', '/nope', { headers: { 'x-request-id': id } });
      expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
      expect(answer.body.requestId).toBe(answer.headers.get('x-request-id'));
    }
  });
});
