import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type SyncRequest, syncRequestSchema } from '#shared/wire/sync.ts';
import {
  answerJson,
  type FakeApiServer,
  listBody,
  startFakeApiServer,
  watchLine,
} from '#test/fakes/api-server.ts';

const REPOSITORY = new URL('../..', import.meta.url).pathname;
const TOKEN = 'token-of-the-agent';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agent-'));
});
afterAll(() => rm(folder, { recursive: true }));

const running = new Set<ChildProcess>();
afterEach(() => {
  for (const child of running) child.kill('SIGKILL');
});

interface Agent {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly exit: Promise<number | null>;
}

function startAgent(args: readonly string[], env: Record<string, string> = {}): Agent {
  const child = spawn(process.execPath, ['agent/main.ts', ...args], {
    cwd: REPOSITORY,
    env: { PATH: process.env.PATH, HOME: folder, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk;
  });
  const exit = new Promise<number | null>((resolve) => {
    child.on('close', (code) => {
      running.delete(child);
      resolve(code);
    });
  });
  return { child, output, exit };
}

async function writeKubeconfig(server: string): Promise<string> {
  const path = join(folder, 'kubeconfig');
  const content = {
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server } }],
    users: [{ name: 'u', user: { token: 'kube-token' } }],
  };
  await writeFile(path, JSON.stringify(content));
  return path;
}

const FLAGS = ['--cluster-name=test', '--metrics-bind-address=127.0.0.1:0', '--log-level=debug'];

describe('start', () => {
  test('--help and --version print and end well', async () => {
    const help = startAgent(['--help']);
    expect([await help.exit, help.output.stderr]).toEqual([0, '']);
    expect(help.output.stdout).toContain('--edge-url=URL');
    const version = startAgent(['--version']);
    expect([await version.exit, version.output.stdout]).toEqual([
      0,
      expect.stringMatching(/^agent \d/),
    ]);
  });

  test('a faulty configuration ends it with 2 and a line for each fault', async () => {
    const providers = join(folder, 'providers.yaml');
    await writeFile(providers, 'providers:\n  - name: a\n    type: nonsense\n');
    const agent = startAgent(['--edge-url=nowhere', `--providers-config=${providers}`]);
    expect(await agent.exit).toBe(2);
    expect(agent.output.stdout).toBe('');
    const lines = agent.output.stderr.trimEnd().split('\n');
    expect(lines).toContain('--cluster-name: is required');
    expect(lines).toContainEqual(expect.stringMatching(/^--edge-url: /));
    expect(lines).toContainEqual(
      expect.stringMatching(/^--providers-config: .*providers\[0\]\.type: /),
    );
  });

  test('a kubeconfig that cannot be read ends it with 2 and one line', async () => {
    const path = join(folder, 'nowhere');
    const env = { AGENT_TOKEN: TOKEN, KUBECONFIG: path };
    const agent = startAgent([...FLAGS, '--edge-url=http://127.0.0.1:1'], env);
    expect(await agent.exit).toBe(2);
    expect(agent.output.stderr).toMatch(/nowhere: cannot be read: .*\n$/);
    expect(agent.output.stderr.trimEnd().split('\n')).toHaveLength(1);
  });
});

/** One External proxy whose port is closed, behind an API server that takes status patches. */
function proxyObject() {
  return {
    apiVersion: 'crawl.example.com/v1alpha1',
    kind: 'Proxy',
    metadata: {
      namespace: 'crawl',
      name: 'outside',
      uid: 'uid-1',
      resourceVersion: '10',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    spec: {
      mode: 'External',
      endpoint: { host: '127.0.0.1', port: 1, protocol: 'http' },
      attributes: { region: 'eu' },
      healthCheck: { intervalSeconds: 1, timeoutSeconds: 1, failureThreshold: 1 },
    },
    status: {} as Record<string, unknown>,
  };
}

async function startCluster(): Promise<{
  api: FakeApiServer;
  proxy: ReturnType<typeof proxyObject>;
}> {
  const proxy = proxyObject();
  const watchers = new Set<{ write(line: string): unknown }>();
  let version = 10;
  const api = await startFakeApiServer((request, response) => {
    const isProxies = request.path.includes('/proxies');
    if (request.query.get('watch') === 'true') {
      response.writeHead(200).flushHeaders();
      if (isProxies) watchers.add(response);
    } else if (request.path.endsWith('/configmaps/egress-agent-installation')) {
      answerJson(response, 200, { data: { id: 'here' } });
    } else if (request.method === 'GET') {
      answerJson(response, 200, listBody(isProxies ? [proxy] : [], `${version}`));
    } else if (request.method === 'PATCH' && request.path.endsWith('/status')) {
      const { status } = JSON.parse(request.body);
      Object.assign(proxy.status, status);
      proxy.metadata.resourceVersion = `${++version}`;
      answerJson(response, 200, proxy);
      for (const watcher of watchers) watcher.write(watchLine('MODIFIED', proxy));
    } else {
      answerJson(response, 201, {});
    }
  });
  return { api, proxy };
}

async function startEdge(): Promise<{ url: string; server: Server; syncs: SyncRequest[] }> {
  const syncs: SyncRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    if (request.headers.authorization !== `Bearer ${TOKEN}`) {
      return answerJson(response, 401, {});
    }
    const sync = syncRequestSchema.parse(JSON.parse(Buffer.concat(chunks).toString()));
    syncs.push(sync);
    const figures = { leases: { 'uid-1': 3 }, reports: {}, counters: { granted: 9 } };
    answerJson(response, 200, { acceptedSeq: sync.seq, serverTime: 0, ...figures });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, server, syncs };
}

describe('a whole agent', () => {
  test('probes, writes the status, tells the edge, and stops cleanly', {
    timeout: 40_000,
  }, async () => {
    const { api, proxy } = await startCluster();
    const edge = await startEdge();
    const env = { AGENT_TOKEN: TOKEN, KUBECONFIG: await writeKubeconfig(api.url) };
    const agent = startAgent([...FLAGS, `--edge-url=${edge.url}`, '--trace-health-probes'], env);
    const eventually = (check: () => void) => vi.waitFor(check, { timeout: 20_000, interval: 50 });

    await eventually(() => expect(edge.syncs[0]).toMatchObject({ kind: 'full', seq: 1 }));
    await eventually(() =>
      expect(edge.syncs.flatMap((sync) => sync.upserts).at(-1)?.healthy).toBe(false),
    );
    const entry = edge.syncs.flatMap((sync) => sync.upserts).at(-1);
    expect(entry).toMatchObject({
      uid: 'uid-1',
      namespace: 'crawl',
      name: 'outside',
      instance: '127.0.0.1:1',
      attributes: { region: 'eu' },
    });
    await eventually(() => expect(proxy.status.phase).toBe('Unhealthy'));
    const status = api.requests.find((request) => request.path.endsWith('/proxies/outside/status'));
    expect(status?.headers.authorization).toBe('Bearer kube-token');

    const started = agent.output.stdout.split('\n').find((line) => line.includes('"started"'));
    const { telemetry } = JSON.parse(started ?? '{}');
    expect((await fetch(`${telemetry}/readyz`)).status).toBe(200);
    const metrics = await (await fetch(`${telemetry}/metrics`)).text();
    expect(metrics).toContain('proxy_operator_proxies{phase="Unhealthy"} 1');
    expect(metrics).toContain('proxy_operator_leases_active 3');
    expect(metrics).toContain('proxy_operator_lease_requests_total{outcome="granted"} 9');
    expect(metrics).toMatch(/healthcheck_failures_total\{proxy="crawl\/outside"\} [1-9]/);
    expect(agent.output.stdout).toContain('these flags have no effect in this build');

    agent.child.kill('SIGTERM');
    expect(await agent.exit).toBe(0);
    expect(agent.output.stderr).toBe('');
    expect(agent.output.stdout).toContain('"msg":"stopped"');
    for (const secret of [TOKEN, 'kube-token']) expect(agent.output.stdout).not.toContain(secret);
    await api.close();
    edge.server.close();
  });

  test('an API server and an edge that are away keep it waiting, not from stopping', async () => {
    const env = {
      AGENT_TOKEN: TOKEN,
      KUBECONFIG: await writeKubeconfig('http://127.0.0.1:1'),
    };
    const agent = startAgent([...FLAGS, '--edge-url=http://127.0.0.1:1'], env);
    await vi.waitFor(() => expect(agent.output.stdout).toContain('cannot list or watch'), {
      timeout: 20_000,
    });
    const started = agent.output.stdout.split('\n').find((line) => line.includes('"started"'));
    const { telemetry } = JSON.parse(started ?? '{}');
    const ready = await fetch(`${telemetry}/readyz`);
    expect([ready.status, await ready.text()]).toEqual([
      503,
      'proxies: the first list is not complete\nsecrets: the first list is not complete\n',
    ]);
    expect((await fetch(`${telemetry}/healthz`)).status).toBe(200);
    agent.child.kill('SIGINT');
    expect(await agent.exit).toBe(0);
  });
});
