/** What the generated configuration does in a real Squid, which runs on 127.0.0.1 for each test. */
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { createProbe } from '#agent/health/probe.ts';
import { squidConfig } from '#agent/providers/kubernetes/squid-config.ts';
import { systemClock } from '#shared/clock.ts';
import { targetWith } from '#test/agent/health/probe-target.ts';
import { closedPort, type Listening, listenWeb, makeCertificate } from '#test/fakes/proxies.ts';
import { configWith, SQUID } from './block.ts';

/** The image's unprivileged user; only root can choose one. */
const user = process.getuid?.() === 0 ? { uid: 13, gid: 13 } : {};
const START_MS_MAX = 10_000;
const { signal } = new AbortController();

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Squid {
  readonly port: number;
  readonly process: ChildProcess;
  readonly exited: Promise<number | null>;
}

async function startSquid(block: object = {}): Promise<Squid> {
  const port = await closedPort();
  const folder = mkdtempSync(join(tmpdir(), 'squid-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  chmodSync(folder, 0o755);
  const file = join(folder, 'squid.conf');
  const text = squidConfig(port, 'proxy-test', configWith(block).kubernetes);
  writeFileSync(file, text.replace(`http_port ${port}`, `http_port 127.0.0.1:${port}`));
  const child = spawn(SQUID, ['-N', '-f', file], { cwd: folder, stdio: 'pipe', ...user });
  let said = '';
  child.stderr.on('data', (chunk) => {
    said += chunk;
  });
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  closing.push(() => {
    child.kill('SIGKILL');
    return exited;
  });
  const deadline = AbortSignal.timeout(START_MS_MAX);
  while (!(await accepts(port))) {
    if (deadline.aborted || child.exitCode !== null) throw new Error(`no squid: ${said}`);
    await systemClock.sleep(50);
  }
  return { port, process: child, exited };
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(true));
    socket.on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

async function web(...args: Parameters<typeof listenWeb>): Promise<Listening> {
  const listening = await listenWeb(...args);
  closing.push(() => listening.close());
  return listening;
}

describe.skipIf(SQUID === '')(SQUID === '' ? 'a Squid (needs squid)' : 'a Squid', () => {
  test('passes plain and tunnelled requests on, and says nothing of itself', async () => {
    const { port } = await startSquid();
    const certificate = await makeCertificate('ip', '127.0.0.1');
    const seen: IncomingHttpHeaders[] = [];
    const http = await web((request, response) => {
      seen.push(request.headers);
      response.end('page');
    });
    const https = await web((_request, response) => void response.end('page'), certificate);
    const probe = createProbe({ clock: systemClock }, { extraCa: [certificate.cert] });
    for (const url of [`http://127.0.0.1:${http.port}/`, `https://127.0.0.1:${https.port}/`]) {
      expect(await probe(targetWith({ port, url }), signal)).toMatchObject({ ok: true });
    }
    const names = Object.keys(seen[0] ?? {}).filter((name) => /via|forward|squid/i.test(name));
    expect(names).toEqual([]);
  });

  test.each([
    ['a cloud’s metadata', 'http://169.254.169.254/latest/meta-data/'],
    ['a cloud’s metadata, by tunnel', 'https://169.254.169.254/'],
    ['a port that is not allowed', 'http://127.0.0.1:25/'],
    ['a port that is not allowed, by tunnel', 'https://127.0.0.1:22/'],
  ])('refuses %s', async (_what, url) => {
    const { port } = await startSquid();
    const result = await createProbe({ clock: systemClock })(targetWith({ port, url }), signal);
    expect(result).toMatchObject({
      ok: false,
      reason: 'ProxyError',
      message: expect.stringMatching(/403/),
    });
  });

  test('refuses clients that the configuration does not name', async () => {
    const { port } = await startSquid({ allowedClients: ['10.0.0.0/8'] });
    const { port: webPort } = await web((_request, response) => void response.end());
    const url = `http://127.0.0.1:${webPort}/`;
    const result = await createProbe({ clock: systemClock })(targetWith({ port, url }), signal);
    expect(result).toMatchObject({ ok: false, reason: 'ProxyError' });
  });

  test('never answers a second request from memory', async () => {
    const { port } = await startSquid();
    let served = 0;
    const { port: webPort } = await web((_request, response) => {
      served++;
      response.writeHead(200, { 'cache-control': 'public, max-age=3600' }).end('page');
    });
    const probe = createProbe({ clock: systemClock });
    const url = `http://127.0.0.1:${webPort}/`;
    for (let count = 0; count < 3; count++) await probe(targetWith({ port, url }), signal);
    expect(served).toBe(3);
  });

  test('calls a dead target dead, whatever status is expected', async () => {
    const { port } = await startSquid();
    const url = `http://127.0.0.1:${await closedPort()}/`;
    const asked = targetWith({ port, url, expectedStatus: 503 });
    const result = await createProbe({ clock: systemClock })(asked, signal);
    expect(result).toMatchObject({ ok: false, reason: 'ProxyError' });
  });

  test('ends within its grace when it is asked to, tunnels or not', async () => {
    const squid = await startSquid();
    const origin = createServer();
    await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
    closing.push(
      () => origin.closeAllConnections(),
      () => void origin.close(),
    );
    const address = origin.address();
    const originPort = typeof address === 'object' ? address?.port : undefined;
    const tunnel = connect(squid.port, '127.0.0.1');
    tunnel.on('error', () => {});
    tunnel.write(`CONNECT 127.0.0.1:${originPort} HTTP/1.1\r\n\r\n`);
    await new Promise((resolve) => tunnel.once('data', resolve));
    const startedMs = systemClock.monotonicMs();
    squid.process.kill('SIGTERM');
    expect(await squid.exited).toBe(0);
    expect(systemClock.monotonicMs() - startedMs).toBeLessThan(8000);
  });
});
