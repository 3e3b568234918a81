/**
 * What an agent under measurement talks to, in another process than its own: the embedded control
 * plane, an edge that takes everything, and one server that is every proxy.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { createControlPlane } from '#deploy/local/control-plane/control-plane.ts';
import { createKubeClient, type KubeClient, tokenAccess } from '#deploy/local/kube/client.ts';
import { installManifests } from '#deploy/local/manifests.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { startEdgeStub } from '#test/integration/edge-stub.ts';
import type { Usage } from './agent.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const STOP_GRACE_MS = 10_000;

/** Requests of the agent so far, by what they were for. */
export interface Calls {
  total: number;
  events: number;
  /** To the status of Proxies, and to the rest of them. */
  statusWrites: number;
  otherPatches: number;
}

export interface BenchAgent {
  usage(): Promise<Usage>;
  stop(): Promise<void>;
}

export interface BenchWorld extends AsyncDisposable {
  /** As an administrator; not counted. */
  readonly kube: KubeClient;
  readonly calls: Readonly<Calls>;
  /** Port at which every address of 127.0.0.0/8 is a proxy. */
  readonly proxyPort: number;
  startAgent(): BenchAgent;
}

export async function openBenchWorld(): Promise<BenchWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  await using closing = new AsyncDisposableStack();
  closing.defer(() => rmSync(folder, { recursive: true, force: true }));
  const edge = await startEdgeStub();
  closing.defer(() => edge.close());
  const proxy = await startProxyOfAll();
  closing.defer(() => proxy.close());
  const calls: Calls = { total: 0, events: 0, statusWrites: 0, otherPatches: 0 };
  const api = await createControlPlane({ clock, port: 0, log: (line) => count(calls, line) });
  closing.defer(() => api.close());
  const kube = createKubeClient(tokenAccess(api.url, api.caPem, api.adminToken));
  closing.defer(() => kube.close());
  await installManifests({ client: kube, clock }, ROOT, AbortSignal.timeout(10_000));
  const kubeconfig = join(folder, 'kubeconfig');
  writeFileSync(kubeconfig, api.kubeconfig('agent'), { mode: 0o600 });
  const providers = join(folder, 'providers.yaml');
  const provider = { name: 'memory', type: 'kubernetes', kubernetes: { image: 'none' } };
  writeFileSync(providers, stringify({ providers: [provider] }));
  const args = [
    `--providers-config=${providers}`,
    `--edge-url=${edge.url}`,
    '--cluster-name=bench',
    '--metrics-bind-address=127.0.0.1:0',
    '--log-level=error',
  ];
  const env = { PATH: process.env['PATH'], AGENT_TOKEN: 'token-of-agents', KUBECONFIG: kubeconfig };
  const open = closing.move();
  return {
    kube,
    calls,
    proxyPort: proxy.port,
    startAgent: () => startAgent(args, env),
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

function startAgent(args: readonly string[], env: NodeJS.ProcessEnv): BenchAgent {
  const file = join(import.meta.dirname, 'agent.ts');
  const child = fork(file, args, { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const exited = once(child, 'exit');
  return {
    async usage() {
      const deadline = AbortSignal.timeout(STOP_GRACE_MS);
      child.send('usage');
      const [usage]: Usage[] = await once(child, 'message', { signal: deadline });
      if (usage === undefined) throw new Error('the agent said nothing');
      return usage;
    },
    async stop() {
      child.kill('SIGTERM');
      const late = new AbortController();
      const killing = clock.sleep(STOP_GRACE_MS, late.signal).then(
        () => child.kill('SIGKILL'),
        () => false,
      );
      await exited;
      late.abort();
      await killing;
    },
  };
}

/** `PATCH /apis/… 200 3 ms system:serviceaccount:…`, as the control plane logs a request. */
function count(calls: Calls, line: string): void {
  const [method, path = ''] = line.split(' ');
  if (!line.endsWith('system:serviceaccount:crawl-system:egress-agent')) return;
  calls.total++;
  const isOfProxy = method === 'PATCH' && path.includes('/proxies/');
  if (isOfProxy && path.endsWith('/status')) calls.statusWrites++;
  else if (isOfProxy) calls.otherPatches++;
  else if (path.includes('/events')) calls.events++;
}

/** Answers what is asked through it by itself, as the echo route of the edge would. */
async function startProxyOfAll(): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ ip: request.socket.localAddress ?? '' }));
  });
  // Nobody but this machine is served, although it listens at every address.
  server.on('connection', (socket) => {
    if (!(socket.remoteAddress ?? '').startsWith('127.')) socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}
