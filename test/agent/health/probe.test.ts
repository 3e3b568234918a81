import type { RequestListener } from 'node:http';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { createProbe } from '#agent/health/probe.ts';
import type { ProbeTarget } from '#agent/health/targets.ts';
import { systemClock } from '#shared/clock.ts';
import {
  type Certificate,
  closedPort,
  type ForwardProxyOptions,
  type Listening,
  listenForwardProxy,
  listenSocks,
  listenTcp,
  listenWeb,
  makeCertificate,
} from '#test/fakes/proxies.ts';
import { targetWith } from './probe-target.ts';

const { signal } = new AbortController();
/** A probe that its own deadline does not end takes undici's, which is longer than this. */
const END_MS_MAX = 8000;
const HIDDEN = 'S3CRET';
const credentials = { username: 'user', password: HIDDEN };

let known: Certificate;
let unknown: Certificate;
let elsewhere: Certificate;
let probe: ReturnType<typeof createProbe>;
beforeAll(async () => {
  known = await makeCertificate('ip', '127.0.0.1');
  unknown = await makeCertificate('ip', '127.0.0.1');
  elsewhere = await makeCertificate('dns', 'elsewhere.example');
  probe = createProbe({ clock: systemClock }, { extraCa: [known.cert, elsewhere.cert] });
});

const open: Listening[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
});
async function keep(listening: Promise<Listening>): Promise<Listening> {
  const each = await listening;
  open.push(each);
  return each;
}

const page: RequestListener = (_request, response) => void response.end('page');
const echo: RequestListener = (_request, response) =>
  void response.end(JSON.stringify({ ip: '198.51.100.7', country: null, asn: null, colo: null }));
const web = (handler: RequestListener = page, tls?: Certificate) => keep(listenWeb(handler, tls));
const forward = (options: ForwardProxyOptions = {}) => keep(listenForwardProxy(options));

const target = (port: number, url: string, more: Partial<ProbeTarget> = {}) =>
  targetWith({ port, url, timeoutMs: 3000, ...more });

describe('a good proxy', () => {
  test('forwards a plain page, asked for in absolute form as crawlers do', async () => {
    const lines: string[] = [];
    const proxy = await forward({ onRequest: (line) => lines.push(line) });
    const { port } = await web();
    const url = `http://127.0.0.1:${port}/x?y=1`;
    const result = await probe(target(proxy.port, url), signal);
    expect(result).toMatchObject({ ok: true, latencyMillis: expect.any(Number) });
    expect(result).not.toHaveProperty('egressIP');
    expect(lines).toEqual([`GET ${url}`]);
  });

  test('tunnels to an https page whose certificate is verified inside', async () => {
    const lines: string[] = [];
    const proxy = await forward({ onRequest: (line) => lines.push(line) });
    const { port } = await web(page, known);
    expect(await probe(target(proxy.port, `https://127.0.0.1:${port}/`), signal)).toMatchObject({
      ok: true,
    });
    expect(lines).toEqual([`CONNECT 127.0.0.1:${port}`]);
  });

  test('may speak TLS itself', async () => {
    const proxy = await forward({ tls: known });
    const https = await web(page, known);
    const http = await web();
    for (const url of [`https://127.0.0.1:${https.port}/`, `http://127.0.0.1:${http.port}/`]) {
      const result = await probe(target(proxy.port, url, { protocol: 'https' }), signal);
      expect(result).toMatchObject({ ok: true });
    }
  });

  test('may speak SOCKS5, with and without credentials', async () => {
    const { port } = await web();
    const secure = await web(page, known);
    for (const given of [undefined, credentials]) {
      const proxy = await keep(listenSocks(given));
      const more = { protocol: 'socks5' as const, ...(given && { credentials: given }) };
      for (const url of [`http://127.0.0.1:${port}/`, `https://127.0.0.1:${secure.port}/`]) {
        expect(await probe(target(proxy.port, url, more), signal)).toMatchObject({ ok: true });
      }
    }
  });

  test('gets its credentials, in either form, and the target does not', async () => {
    const proxy = await forward({ credentials: `user:${HIDDEN}` });
    const seen: unknown[] = [];
    const handler: RequestListener = (request, response) => {
      seen.push(request.headers['proxy-authorization']);
      response.end();
    };
    const https = await web(handler, known);
    const { port } = await web();
    for (const url of [`http://127.0.0.1:${port}/`, `https://127.0.0.1:${https.port}/`]) {
      expect(await probe(target(proxy.port, url, { credentials }), signal)).toMatchObject({
        ok: true,
      });
    }
    expect(seen).toEqual([undefined]);
  });

  test('tells its egress address through the echo page alone', async () => {
    const proxy = await forward();
    const { port } = await web(echo);
    const url = `http://127.0.0.1:${port}/v1/echo`;
    expect(await probe(target(proxy.port, url, { echo: true }), signal)).toMatchObject({
      ok: true,
      egressIP: '198.51.100.7',
    });
    expect(await probe(target(proxy.port, url), signal)).not.toHaveProperty('egressIP');
  });

  test('is reached over a new connection for every probe, and none is left', async () => {
    const proxy = await forward();
    const { port } = await web();
    const url = `http://127.0.0.1:${port}/`;
    for (let count = 0; count < 5; count++) await probe(target(proxy.port, url), signal);
    expect(proxy.connections).toBe(5);
    await vi.waitFor(() => expect(proxy.openConnections).toBe(0));
  });

  test('may send a page without end: what is read of it is bounded', async () => {
    const proxy = await forward();
    const { port } = await web((_request, response) => {
      const write = () => {
        while (!response.destroyed && response.write('x'.repeat(16_384)));
      };
      response.on('drain', write);
      write();
    });
    const result = await probe(target(proxy.port, `http://127.0.0.1:${port}/`), signal);
    expect(result).toMatchObject({ ok: true });
  });
});

/** Each fault sets itself up and gives the target; `https` asks the target over TLS. */
const faults: [string, string, () => Promise<ProbeTarget>][] = [
  [
    'a closed port',
    'ConnectionRefused',
    async () => target(await closedPort(), 'http://127.0.0.1/'),
  ],
  [
    'a closed port, https',
    'ConnectionRefused',
    async () => target(await closedPort(), 'https://127.0.0.1/'),
  ],
  [
    'a host name that does not exist',
    'HostNotFound',
    // An empty label: no name server is asked, so none can be slow or make something up.
    async () => target(1, 'http://127.0.0.1/', { host: 'no..where' }),
  ],
  [
    'a proxy that hangs up',
    'ConnectionReset',
    async () => target((await keep(listenTcp((s) => void s.end()))).port, 'http://127.0.0.1/'),
  ],
  [
    'a proxy that hangs up on CONNECT',
    'ConnectionReset',
    async () => target((await keep(listenTcp((s) => void s.end()))).port, 'https://127.0.0.1/'),
  ],
  ['a proxy that never answers', 'Timeout', async () => silent('http://127.0.0.1/')],
  ['a proxy that never answers CONNECT', 'Timeout', async () => silent('https://127.0.0.1/')],
  [
    'a SOCKS proxy that never answers',
    'Timeout',
    async () => ({ ...(await silent('http://127.0.0.1/')), protocol: 'socks5' as const }),
  ],
  [
    'a page that stops in the middle',
    'Timeout',
    async () => {
      const { port } = await web((_request, response) => {
        response.writeHead(200, { 'content-length': '100' });
        response.write('half');
      });
      const url = `http://127.0.0.1:${port}/`;
      return target((await forward()).port, url, { timeoutMs: 300 });
    },
  ],
  [
    'a target that is dead',
    'ProxyError',
    async () => target((await forward()).port, `http://127.0.0.1:${await closedPort()}/`),
  ],
  [
    'a target that is dead, though its error page has the expected status',
    'ProxyError',
    async () =>
      target((await forward()).port, `http://127.0.0.1:${await closedPort()}/`, {
        expectedStatus: 503,
      }),
  ],
  [
    'a dead target behind a proxy that does not sign its pages',
    'UnexpectedStatus',
    async () =>
      target((await forward({ squidMark: false })).port, `http://127.0.0.1:${await closedPort()}/`),
  ],
  [
    'a target that is dead, https',
    'ProxyError',
    async () => target((await forward()).port, `https://127.0.0.1:${await closedPort()}/`),
  ],
  [
    'a target that is dead, by SOCKS',
    'ProxyError',
    async () =>
      target((await keep(listenSocks())).port, `http://127.0.0.1:${await closedPort()}/`, {
        protocol: 'socks5',
      }),
  ],
  [
    'a wrong status',
    'UnexpectedStatus',
    async () => {
      const { port } = await web((_request, response) => void response.writeHead(500).end());
      return target((await forward()).port, `http://127.0.0.1:${port}/`);
    },
  ],
  [
    'a page in the place of the echo page',
    'UnexpectedBody',
    async () =>
      target((await forward()).port, `http://127.0.0.1:${(await web()).port}/`, { echo: true }),
  ],
  [
    'a certificate that nobody signed, of the target',
    'TlsError',
    async () => {
      const { port } = await web(page, unknown);
      return target((await forward()).port, `https://127.0.0.1:${port}/`);
    },
  ],
  [
    'a certificate of another name, of the target',
    'TlsError',
    async () => {
      const { port } = await web(page, elsewhere);
      return target((await forward()).port, `https://127.0.0.1:${port}/`);
    },
  ],
  [
    'a certificate that nobody signed, of the proxy',
    'TlsError',
    async () => {
      const { port } = await web();
      const proxy = await forward({ tls: unknown });
      return target(proxy.port, `http://127.0.0.1:${port}/`, { protocol: 'https' });
    },
  ],
  [
    'a plain proxy that is said to speak TLS',
    'TlsError',
    async () => target((await forward()).port, 'http://127.0.0.1/', { protocol: 'https' }),
  ],
  ['refused credentials', 'ProxyAuthFailed', async () => guarded('http://127.0.0.1/')],
  ['refused credentials, https', 'ProxyAuthFailed', async () => guarded('https://127.0.0.1/')],
  [
    'refused credentials, by SOCKS',
    'ProxyAuthFailed',
    async () => {
      const proxy = await keep(listenSocks({ username: 'user', password: 'another' }));
      return target(proxy.port, 'http://127.0.0.1/', { protocol: 'socks5', credentials });
    },
  ],
];

async function silent(url: string): Promise<ProbeTarget> {
  const { port } = await keep(listenTcp((socket) => void socket.resume()));
  return target(port, url, { timeoutMs: 300 });
}

async function guarded(url: string): Promise<ProbeTarget> {
  return target((await forward({ credentials: 'user:another' })).port, url, { credentials });
}

describe('a probe fails by', () => {
  test.each(faults)('%s: %s', async (_what, reason, setUp) => {
    const asked = await setUp();
    const startedMs = systemClock.monotonicMs();
    const result = await probe(asked, signal);
    expect(result).toMatchObject({ ok: false, reason });
    expect(systemClock.monotonicMs() - startedMs).toBeLessThan(END_MS_MAX);
    expect(JSON.stringify(result)).not.toContain(HIDDEN);
  });
});

test('an aborted probe ends at once, with the reason of its signal', async () => {
  const asked = { ...(await silent('https://127.0.0.1/')), timeoutMs: 30_000 };
  const stop = new AbortController();
  const probing = probe(asked, stop.signal);
  stop.abort(new Error('stopping'));
  await expect(probing).rejects.toThrow('stopping');
});
