/**
 * The agent between an API server and an edge that come and go: it keeps what it has, loses no
 * change, and tells once. All parts are real; relays stand for the network between them.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAgent } from '#deploy/local/agent-process.ts';
import { objectAt, stringAt } from '#deploy/local/control-plane/api/object-meta.ts';
import {
  type ControlPlane,
  createControlPlane,
} from '#deploy/local/control-plane/control-plane.ts';
import { startEdge } from '#deploy/local/edge-process.ts';
import { createKubeClient, type KubeClient, tokenAccess } from '#deploy/local/kube/client.ts';
import { installManifests } from '#deploy/local/manifests.ts';
import { whenAnswering } from '#deploy/local/part.ts';
import { choosePort } from '#deploy/local/ports.ts';
import { createProcessRecords } from '#deploy/local/process/records.ts';
import { openStateDir, openTokens } from '#deploy/local/state-dir.ts';
import { createLeaseClient, type LeaseClient } from '#shared/client/lease-client.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { type Listening, listenForwardProxy } from '#test/fakes/proxies.ts';
import { eventually } from './eventually.ts';
import { createProxy, PROXIES } from './proxy-objects.ts';
import { startTcpRelay, type TcpRelay } from './tcp-relay.ts';

const ROOT = resolve(import.meta.dirname, '../..');
/** So often the agent must have tried in vain before an outage counts as one. */
const TRIES = 3;
/**
 * The agent notices within a minute that a watch says nothing any more. The first request after
 * that may still take a dead connection of the pool, and gives it up at its own deadline.
 */
const SILENCE_MS_MAX = 60_000 + 15_000;

const folder = mkdtempSync(join(tmpdir(), 'outages-'));
const closing = new AsyncDisposableStack();
let kube: KubeClient;
let leases: LeaseClient;
let toApi: TcpRelay;
let toEdge: TcpRelay;
let forward: Listening;

async function openAll(): Promise<void> {
  closing.defer(() => rmSync(folder, { recursive: true, force: true }));
  forward = await listenForwardProxy();
  closing.defer(() => forward.close());
  const api = await createControlPlane({ clock, port: 0 });
  closing.defer(() => api.close());
  kube = createKubeClient(tokenAccess(api.url, api.caPem, api.adminToken));
  closing.defer(() => kube.close());
  await installManifests({ client: kube, clock }, ROOT, AbortSignal.timeout(10_000));
  await startProcesses(api);
}

async function startProcesses(api: ControlPlane): Promise<void> {
  const state = await openStateDir(join(folder, 'state'));
  closing.defer(() => state.unlock());
  const tokens = openTokens(state);
  const parts = {
    clock,
    child: { clock, stackId: state.stackId, records: createProcessRecords(state.processes) },
    logDir: state.logs,
    observer: { restarting: () => {}, failed: () => {} },
  };
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder };
  const edgePort = await choosePort('edge', 0);
  const edge = startEdge(parts, { root: ROOT, port: edgePort, state, tokens, env });
  closing.defer(() => edge.stop());
  await edge.ready(AbortSignal.timeout(60_000));
  leases = createLeaseClient({ baseUrl: edge.url, token: tokens.discovery });
  toApi = await startTcpRelay(api.port);
  closing.defer(() => toApi.close());
  toEdge = await startTcpRelay(edgePort);
  closing.defer(() => toEdge.close());
  const kubeconfig = api.kubeconfig('agent').replace(`:${api.port}`, `:${toApi.port}`);
  writeFileSync(state.agentKubeconfig, kubeconfig, { mode: 0o600 });
  const metricsPort = await choosePort('metrics', 0);
  const agent = startAgent(parts, {
    root: ROOT,
    edgeUrl: `http://127.0.0.1:${toEdge.port}`,
    metricsPort,
    kubeconfig: state.agentKubeconfig,
    state,
    tokens,
    env,
  });
  closing.defer(() => agent.stop(5_000));
  const readyz = `http://127.0.0.1:${metricsPort}/readyz`;
  await whenAnswering(clock, readyz, AbortSignal.timeout(30_000));
}

const createExternal = (name: string) =>
  createProxy(kube, name, {
    mode: 'External',
    endpoint: { host: '127.0.0.1', port: forward.port },
    // A page of the proxy's own: the agent's way to the edge is what these tests break.
    healthCheck: {
      url: `http://127.0.0.1:${forward.port}/`,
      expectedStatus: 400,
      intervalSeconds: 1,
      timeoutSeconds: 1,
    },
  });

async function phase(name: string): Promise<string> {
  const proxy = await kube.request({ path: `${PROXIES}/${name}` });
  return stringAt(objectAt(proxy, 'status'), 'phase');
}

/** Names of what the edge offers as healthy. */
async function offered(): Promise<string[]> {
  const { proxies } = await leases.proxies({ healthy: true });
  return proxies.map(({ name }) => name).sort();
}

const agentLog = () =>
  readFileSync(join(folder, 'state/logs/agent.log'), 'utf8')
    .split('\n')
    .filter((line) => line !== '');

describe('the agent', () => {
  beforeAll(openAll, 90_000);
  afterAll(() => closing.disposeAsync(), 30_000);

  it('brings a proxy to the edge', async () => {
    await createExternal('first');
    await eventually(async () => expect(await offered()).toEqual(['first']));
  }, 30_000);

  it('misses no change while the API server cannot be reached', async () => {
    toApi.cut();
    await createExternal('created-meanwhile');
    await kube.request({ method: 'DELETE', path: `${PROXIES}/first` });
    await eventually(() => expect(toApi.refused).toBeGreaterThanOrEqual(TRIES), 30_000);
    // What it knows stands: the edge goes on offering it.
    expect(await offered()).toEqual(['first']);
    toApi.repair();
    await eventually(async () => expect(await offered()).toEqual(['created-meanwhile']), 30_000);
  }, 60_000);

  it('keeps reconciling while the edge is away, says so once, and catches up by itself', async () => {
    const before = agentLog().length;
    toEdge.cut();
    await createExternal('second');
    // Reconciling goes on: the status tells of the new one while the edge knows nothing of it.
    await eventually(async () => expect(await phase('second')).toBe('Ready'));
    await eventually(() => expect(toEdge.refused).toBeGreaterThanOrEqual(TRIES), 30_000);
    expect(await offered()).toEqual(['created-meanwhile']);
    toEdge.repair();
    await eventually(async () => {
      expect(await offered()).toEqual(['created-meanwhile', 'second']);
    }, 40_000);
    const said = agentLog().slice(before);
    expect(said.filter((line) => line.includes('the edge is away'))).toHaveLength(1);
    expect(said.filter((line) => line.includes('the edge is back'))).toHaveLength(1);
  }, 60_000);

  it('notices within a minute that a watch says nothing any more', async () => {
    toApi.silence();
    await createExternal('third');
    const createdMs = clock.monotonicMs();
    await eventually(async () => expect(await offered()).toContain('third'), 120_000);
    expect(clock.monotonicMs() - createdMs).toBeLessThan(SILENCE_MS_MAX);
  }, 150_000);
});
