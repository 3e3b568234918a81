/**
 * Brings the whole system up on this machine, in parallel where nothing waits for anything else,
 * and registers how each part ends. What is registered last ends first.
 */
import type { Clock } from '#shared/clock.ts';
import { startAgent } from './agent-process.ts';
import type { Cluster } from './clusters/cluster.ts';
import { startEdge } from './edge-process.ts';
import { StartFault } from './fault.ts';
import { runJourney } from './journey.ts';
import { createKubeClient } from './kube/client.ts';
import { installManifests } from './manifests.ts';
import { startLocalNode } from './node/node.ts';
import { createSquidImage, findSquid, isSquidImage } from './node/squid-image.ts';
import type { StartOptions } from './options.ts';
import type { Output } from './output.ts';
import { type PartDeps, whenAnswering } from './part.ts';
import { choosePort, LOOPBACK } from './ports.ts';
import { createProcessRecords, endLeftovers } from './process/records.ts';
import { applySamples, sampleNames, sampleProxies } from './samples.ts';
import { openStateDir, openTokens, type StateDir, type Tokens } from './state-dir.ts';

const AGENT_STOP_GRACE_MS = 5_000;
const PART_MS_MAX = 60_000;

export interface StackDeps {
  readonly clock: Clock;
  readonly output: Output;
  /** Environment of the start; child processes inherit it. */
  readonly env: Readonly<Record<string, string>>;
  /** Root of the repository. */
  readonly root: string;
  /** Aborts the start; the reason is what it fails with. */
  readonly signal: AbortSignal;
  /** A part ended in a way that no new start heals. */
  fail(fault: StartFault): void;
}

interface Ports {
  readonly edge: number;
  readonly api: number;
  readonly metrics: number;
}

/** Everything up to the fetched page. Whatever happens, `closing` ends what was started. */
export async function runStack(
  deps: StackDeps,
  options: StartOptions,
  closing: AsyncDisposableStack,
): Promise<void> {
  const { clock, output, root, signal } = deps;
  const squid = requireSquid(deps, options);
  const state = await openStateDir(options.stateDir);
  closing.defer(() => state.unlock());
  output.step({ step: 'starting', stateDir: state.path });
  const ended = await endLeftovers(clock, state.processes, state.stackId);
  if (ended > 0) output.step({ step: 'leftovers', ended });
  const ports = await choosePorts(options);
  signal.throwIfAborted();
  const tokens = openTokens(state);
  const parts = partDeps(deps, state);
  const edge = startEdge(parts, { root, port: ports.edge, state, tokens, env: deps.env });
  closing.defer(() => edge.stop());
  const edgeUp = whenUp('edge', edge.part.tail, edge.ready(deadline(signal)), signal).then(() =>
    output.step({ step: 'edge', url: edge.url }),
  );
  // It is waited for below; until then a failure must not count as unhandled.
  edgeUp.catch(() => {});
  const cluster = await openCluster(deps, options, parts, state, ports.api);
  closing.defer(() => cluster.close());
  signal.throwIfAborted();
  const kube = createKubeClient(cluster.access);
  closing.defer(() => kube.close());
  await installManifests({ client: kube, clock }, root, signal);
  output.step({
    step: 'control-plane',
    url: cluster.access.server,
    kubeconfig: cluster.kubeconfig,
  });
  if (cluster.needsNode && squid !== undefined) {
    const images = createSquidImage(squid);
    const node = startLocalNode(
      {
        client: kube,
        clock,
        child: parts.child,
        images: (i) => (isSquidImage(i) ? images : undefined),
      },
      {
        runtimeDir: state.runtimeDir,
        logDir: state.podLogs,
        onError: (message) => output.step({ step: 'trouble', part: 'node', message }),
      },
    );
    closing.defer(() => node.stop());
  }
  await startAgentPart(deps, parts, { cluster, state, tokens, ports, edgeUrl: edge.url }, closing);
  const samples = sampleNames(options.proxies);
  await applySamples(kube, sampleProxies(root, options.proxies), signal);
  output.step({ step: 'applied', proxies: samples });
  await edgeUp;
  await runJourney(
    { clock, kube, output, signal },
    {
      samples,
      edgeUrl: edge.url,
      discoveryToken: tokens.discovery,
      ownEgress: cluster.needsNode,
    },
  );
}

/** Asked first of all: without it nothing else is worth starting. */
function requireSquid(deps: StackDeps, options: StartOptions): string | undefined {
  if (options.kubeconfig !== undefined) return undefined;
  if (process.platform !== 'linux') {
    throw new StartFault(
      'the local node needs Linux: it runs proxies as processes with addresses in 127.42.0.0/16',
    );
  }
  const squid = findSquid(deps.env['PATH'] ?? '', options.squid);
  if (squid !== undefined) return squid;
  if (options.squid !== undefined) {
    throw new StartFault(`SQUID: ${options.squid} is not a program that can be run`);
  }
  throw new StartFault('squid is not on this machine; install it: sudo apt-get install squid');
}

async function choosePorts(options: StartOptions): Promise<Ports> {
  const [edge, api, metrics] = await Promise.all([
    choosePort('--edge-port', options.edgePort),
    // With a cluster of somebody's own nothing listens there.
    choosePort('--api-port', options.kubeconfig === undefined ? options.apiPort : 0),
    choosePort('--metrics-port', options.metricsPort),
  ]);
  return { edge, api, metrics };
}

function partDeps({ clock, output, fail }: StackDeps, state: StateDir): PartDeps {
  return {
    clock,
    child: { clock, stackId: state.stackId, records: createProcessRecords(state.processes) },
    logDir: state.logs,
    observer: {
      restarting: (part, reason, inMs) => output.step({ step: 'restarting', part, reason, inMs }),
      failed: (part, reason) => fail(new StartFault(`the ${part} cannot run: ${reason}`)),
    },
  };
}

/** Imports only what is used: the embedded control plane and a kubeconfig's library are large. */
async function openCluster(
  { clock, env, signal }: StackDeps,
  { kubeconfig, assetsDir }: StartOptions,
  parts: PartDeps,
  state: StateDir,
  port: number,
): Promise<Cluster> {
  if (kubeconfig !== undefined) {
    const { openRealCluster } = await import('./clusters/real.ts');
    return openRealCluster(kubeconfig, signal);
  }
  if (assetsDir !== undefined) {
    const { openAssetsCluster } = await import('./clusters/envtest.ts');
    return openAssetsCluster(parts, { folder: assetsDir, port, state, env }, signal);
  }
  const { openEmbeddedCluster } = await import('./clusters/embedded.ts');
  return openEmbeddedCluster({ clock }, { port, state });
}

interface AgentPlace {
  readonly cluster: Cluster;
  readonly state: StateDir;
  readonly tokens: Tokens;
  readonly ports: Ports;
  readonly edgeUrl: string;
}

async function startAgentPart(
  { clock, output, root, env, signal }: StackDeps,
  parts: PartDeps,
  { cluster, state, tokens, ports, edgeUrl }: AgentPlace,
  closing: AsyncDisposableStack,
): Promise<void> {
  const agent = startAgent(parts, {
    root,
    edgeUrl,
    metricsPort: ports.metrics,
    kubeconfig: cluster.agentKubeconfig,
    state,
    tokens,
    env,
  });
  closing.defer(() => agent.stop(AGENT_STOP_GRACE_MS));
  const url = `http://${LOOPBACK}:${ports.metrics}`;
  const ready = whenAnswering(clock, `${url}/readyz`, deadline(signal));
  await whenUp('agent', agent.tail, ready, signal);
  output.step({ step: 'agent', metrics: `${url}/metrics` });
}

function deadline(signal: AbortSignal): AbortSignal {
  return AbortSignal.any([signal, AbortSignal.timeout(PART_MS_MAX)]);
}

async function whenUp(
  part: string,
  tail: () => string[],
  ready: Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  try {
    await ready;
  } catch (cause) {
    signal.throwIfAborted();
    const lines = [`the ${part} did not answer within ${PART_MS_MAX / 1000} s`, ...tail()];
    throw new StartFault(lines.join('\n'), { cause });
  }
}
