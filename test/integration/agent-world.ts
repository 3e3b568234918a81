/**
 * A cluster for agents that are to be broken: the embedded control plane and the local node with
 * real Squids in this process, an edge that takes everything, and agents as processes of their own,
 * each behind a relay that a test commands.
 */
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { stringify } from 'yaml';
import {
  type ControlPlane,
  createControlPlane,
} from '#deploy/local/control-plane/control-plane.ts';
import { kubeconfigText } from '#deploy/local/control-plane/kubeconfig.ts';
import { createKubeClient, type KubeClient, tokenAccess } from '#deploy/local/kube/client.ts';
import { installManifests } from '#deploy/local/manifests.ts';
import { startLocalNode } from '#deploy/local/node/node.ts';
import { createSquidImage, findSquid, isSquidImage } from '#deploy/local/node/squid-image.ts';
import { type Child, startChild } from '#deploy/local/process/child.ts';
import { markedProcesses } from '#deploy/local/process/identity.ts';
import { killAll, sendSignal } from '#deploy/local/process/kill.ts';
import { createProcessRecords } from '#deploy/local/process/records.ts';
import { systemClock as clock } from '#shared/clock.ts';
import type { ApiProxy } from './api-proxy.ts';
import { type EdgeStub, startEdgeStub } from './edge-stub.ts';

const ROOT = resolve(import.meta.dirname, '../..');
/** Pods of the world's own node. */
export const LOCAL_PROVIDER = {
  name: 'local',
  type: 'kubernetes',
  kubernetes: { image: 'ubuntu/squid:6.6-24.04_edge' },
};
const LOG_TAIL_LINES = 12;

/** Why such a world cannot be had here; undefined when it can. */
export const cannotRun: string | undefined =
  findSquid(process.env['PATH'] ?? '') === undefined ? 'needs squid' : undefined;

/** Flags that keep what a test does not look at out of its way. */
const QUIET = ['--provider-check-interval=0', '--metrics-bind-address=127.0.0.1:0'];

export interface AgentWorld {
  readonly api: ControlPlane;
  /** As an administrator, past every relay. */
  readonly kube: KubeClient;
  readonly edge: EdgeStub;
  /** Starts an agent that reaches the API server through `relay` alone. */
  startAgent(name: string, relay: ApiProxy, flags?: readonly string[]): Promise<Child>;
  /** Last lines that an agent of the name wrote. */
  logTail(name: string): string[];
  /** Kills the Squid of a pod; answers whether there was one. */
  killSquid(podUid: string): boolean;
  /** Ends everything; nothing is left of it on the machine. */
  close(): Promise<void>;
}

export interface AgentWorldOptions {
  /** Entries of the providers file; absent: the one of the local node. */
  readonly providers?: readonly object[];
  /** What agents find in their environment besides. */
  readonly env?: Readonly<Record<string, string>>;
}

let worlds = 0;

export async function openAgentWorld(options: AgentWorldOptions = {}): Promise<AgentWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'agents-'));
  await using closing = new AsyncDisposableStack();
  closing.defer(() => rmSync(folder, { recursive: true, force: true }));
  const stackId = `agents-${process.pid}-${worlds++}`;
  const child = {
    clock,
    stackId,
    records: createProcessRecords(join(folder, 'processes.json')),
  };
  const agents = new Set<Child>();
  closing.defer(async () => {
    await killAll(clock, () => markedProcesses(stackId));
    // Its end is written down in the folder, which goes next.
    await Promise.all(Array.from(agents, ({ exited }) => exited));
  });
  const edge = await startEdgeStub();
  closing.defer(() => edge.close());
  const api = await createControlPlane({ clock, port: 0 });
  closing.defer(() => api.close());
  const kube = createKubeClient(tokenAccess(api.url, api.caPem, api.adminToken));
  closing.defer(() => kube.close());
  await installManifests({ client: kube, clock }, ROOT, AbortSignal.timeout(10_000));
  const squid = createSquidImage(findSquid(process.env['PATH'] ?? '') ?? 'squid');
  const node = startLocalNode(
    { client: kube, clock, child, images: (image) => (isSquidImage(image) ? squid : undefined) },
    // Other users must be able to reach it, which they cannot below a folder of `mkdtemp`.
    { runtimeDir: `${folder}-pods`, logDir: join(folder, 'pod-logs'), onError: () => {} },
  );
  closing.defer(() => node.stop());
  const providers = join(folder, 'providers.yaml');
  const { providers: entries = [LOCAL_PROVIDER], env } = options;
  writeFileSync(providers, stringify({ providers: entries }));
  const logOf = (name: string) => join(folder, `${name}.log`);
  const open = closing.move();
  return {
    api,
    kube,
    edge,
    async startAgent(name, relay, flags = []) {
      const kubeconfig = join(folder, `${name}.kubeconfig`);
      const { url: server, caPem } = relay;
      const access = { cluster: 'relayed', server, caPem, user: name, token: api.agentToken };
      writeFileSync(kubeconfig, kubeconfigText(access), { mode: 0o600 });
      const output = openSync(logOf(name), 'a');
      const args = [`--providers-config=${providers}`, `--edge-url=${edge.url}`];
      try {
        const agent = await startChild(child, {
          name,
          command: process.execPath,
          args: [join(ROOT, 'agent/main.ts'), ...args, '--cluster-name=test', ...QUIET, ...flags],
          cwd: ROOT,
          env: {
            ...env,
            KUBECONFIG: kubeconfig,
            AGENT_TOKEN: 'token-of-agents',
            POD_NAME: name,
          },
          output,
        });
        agents.add(agent);
        return agent;
      } finally {
        closeSync(output);
      }
    },
    logTail: (name) => readFileSync(logOf(name), 'utf8').trim().split('\n').slice(-LOG_TAIL_LINES),
    killSquid(podUid) {
      const found = markedProcesses(stackId).find(({ pid }) => commandOf(pid).includes(podUid));
      if (found !== undefined) sendSignal(found.pid, 'SIGKILL');
      return found !== undefined;
    },
    close: () => open.disposeAsync(),
  };
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
