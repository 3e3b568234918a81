/** The local node on the embedded control plane, with an image whose containers are shell scripts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { objectAt, stringAt } from '#deploy/local/control-plane/api/object-meta.ts';
import { createControlPlane } from '#deploy/local/control-plane/control-plane.ts';
import { type JsonObject, objects } from '#deploy/local/control-plane/json.ts';
import { createKubeClient, type KubeClient, tokenAccess } from '#deploy/local/kube/client.ts';
import type { ImageAdapter } from '#deploy/local/node/image.ts';
import { type LocalNode, startLocalNode } from '#deploy/local/node/node.ts';
import { markedProcesses } from '#deploy/local/process/identity.ts';
import { createProcessRecords } from '#deploy/local/process/records.ts';
import { systemClock as clock } from '#shared/clock.ts';

export const PODS = '/api/v1/namespaces/default/pods';

const scripts: ImageAdapter = {
  prepare: ({ container, folder, mounts }) => ({
    command: '/bin/sh',
    args: ['-c', container.command.join(' '), folder, ...mounts.map(({ hostPath }) => hostPath)],
  }),
  defaultOwner: () => ({ uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }),
};

export interface NodeWorld {
  readonly client: KubeClient;
  readonly stackId: string;
  /** Starts the node again after `node.stop()`, as the next start of a stack would. */
  startNode(): LocalNode;
  /** Creates a pod of one container and returns its path. */
  createPod(
    name: string,
    script: string,
    spec?: JsonObject,
    container?: JsonObject,
  ): Promise<string>;
  pod(name: string): Promise<PodView>;
  /** Processes that the node runs now. */
  processes(): number[];
  close(): Promise<void>;
}

export interface PodView {
  readonly phase: string;
  readonly ip: string;
  readonly ready: boolean;
  readonly container: JsonObject;
  readonly object: JsonObject;
}

let worlds = 0;

export async function openNodeWorld(): Promise<NodeWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'node-'));
  const stackId = `node-test-${process.pid}-${worlds++}`;
  const server = await createControlPlane({ clock, port: 0 });
  const client = createKubeClient(tokenAccess(server.url, server.caPem, server.adminToken));
  const records = createProcessRecords(join(folder, 'processes.json'));
  const nodes: LocalNode[] = [];
  return {
    client,
    stackId,
    startNode() {
      const images = (image: string) => (image === 'scripts' ? scripts : undefined);
      const node = startLocalNode(
        { client, clock, child: { clock, stackId, records }, images },
        {
          runtimeDir: join(folder, 'runtime'),
          logDir: join(folder, 'logs'),
          onError: () => {},
        },
      );
      nodes.push(node);
      return node;
    },
    async createPod(name, script, spec = {}, container = {}) {
      const one = { name: 'main', image: 'scripts', command: [script], ...container };
      await client.request({
        method: 'POST',
        path: PODS,
        body: {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name, namespace: 'default' },
          spec: { restartPolicy: 'Never', ...spec, containers: [one] },
        },
      });
      return `${PODS}/${name}`;
    },
    pod: async (name) => view(await client.request({ path: `${PODS}/${name}` })),
    processes: () => markedProcesses(stackId).map(({ pid }) => pid),
    async close() {
      for (const node of nodes) await node.stop();
      await client.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function view(object: JsonObject): PodView {
  const status = objectAt(object, 'status');
  const container = objects(status['containerStatuses'])[0] ?? {};
  return {
    phase: stringAt(status, 'phase'),
    ip: stringAt(status, 'podIP'),
    ready: container['ready'] === true,
    container,
    object,
  };
}
