/**
 * The kubernetes provider on the embedded control plane, with the agent's own rights, and the
 * local node that runs its pods as real Squids.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { ClusterAccess } from '#agent/kube/access.ts';
import { createKubeClient, type KubeClient } from '#agent/kube/client.ts';
import { createKubernetesProvider } from '#agent/providers/kubernetes/provider.ts';
import {
  type ControlPlane,
  createControlPlane,
} from '#deploy/local/control-plane/control-plane.ts';
import { createKubeClient as createLocalClient, tokenAccess } from '#deploy/local/kube/client.ts';
import { installManifests } from '#deploy/local/manifests.ts';
import { startLocalNode } from '#deploy/local/node/node.ts';
import { createSquidImage, isSquidImage } from '#deploy/local/node/squid-image.ts';
import { markedProcesses } from '#deploy/local/process/identity.ts';
import { killAll } from '#deploy/local/process/kill.ts';
import { createProcessRecords } from '#deploy/local/process/records.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { configWith, SQUID } from '#test/agent/providers/kubernetes/block.ts';
import { closedPort, listenTcp } from '#test/fakes/proxies.ts';
import type { Backend } from './backend.ts';
import { kubernetesMachines } from './kubernetes-machines.ts';
import { CONFIGURED_NAME } from './world.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const NAMESPACE = 'default';
const IMAGE = 'ubuntu/squid:6.6-24.04_edge';
/** A Squid is up within two seconds; the rest is for a machine that is busy. */
const SETTLE_MS_MAX = 30_000;

/** Why the backend cannot be had here; undefined when it can. */
export const cannotRun = SQUID === '' ? 'needs squid' : undefined;

let opened = 0;

export async function openKubernetesBackend(): Promise<Backend> {
  await using closing = new AsyncDisposableStack();
  const api = await createControlPlane({ clock, port: 0 });
  closing.defer(() => api.close());
  await startNode(api, closing);
  const silentServer = await listenTcp(() => {});
  closing.defer(() => silentServer.close());
  const logLines: string[] = [];
  const log = {
    debug: (fields: object, message: string) =>
      void logLines.push(JSON.stringify({ ...fields, message })),
  };
  const clientOf = (server: string, token: string): KubeClient => {
    const access = accessTo(server, api.caPem, token);
    const client = createKubeClient({ access, clock, userAgent: 'conformance' });
    closing.defer(() => client.close());
    return client;
  };
  const config = { ...configWith({ image: IMAGE }), name: CONFIGURED_NAME };
  const providerOver = (client: KubeClient) => createKubernetesProvider(config, { client, log });
  const admin = clientOf(api.url, api.adminToken);
  const agent = clientOf(api.url, api.agentToken);
  const nowhere = clientOf(`https://127.0.0.1:${await closedPort()}`, api.agentToken);
  const silence = clientOf(`https://127.0.0.1:${silentServer.port}`, api.agentToken);
  const open = closing.move();
  return {
    surroundings: { namespace: NAMESPACE, placement: {}, port: 3128 },
    settleMsMax: SETTLE_MS_MAX,
    malformedIds: ['proxy-a', '/proxy-a', 'default/', 'a/b/c', 'Default/proxy-a', 'default/..'],
    idOf: (name) => `${NAMESPACE}/${name}`,
    logLines,
    newProvider: () => providerOver(agent),
    refused: () => providerOver(nowhere),
    silent: () => providerOver(silence),
    ...kubernetesMachines(admin, NAMESPACE),
    close: () => open.disposeAsync(),
  };
}

/** By a bearer token, as service accounts have it. */
function accessTo(server: string, caPem: string, token: string): ClusterAccess {
  const credentials = { headers: { authorization: `Bearer ${token}` }, tls: { ca: caPem } };
  return { server, credentials: async () => credentials, refresh: () => {} };
}

/** The agent's rights, and a node that plays Squid pods; both end with `closing`. */
async function startNode(api: ControlPlane, closing: AsyncDisposableStack): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'));
  closing.defer(() => rmSync(folder, { recursive: true, force: true }));
  const stackId = `conformance-${process.pid}-${opened++}`;
  closing.defer(async () => {
    await killAll(clock, () => markedProcesses(stackId));
  });
  const client = createLocalClient(tokenAccess(api.url, api.caPem, api.adminToken));
  closing.defer(() => client.close());
  await installManifests({ client, clock }, ROOT, AbortSignal.timeout(10_000));
  const records = createProcessRecords(join(folder, 'processes.json'));
  const squid = createSquidImage(SQUID);
  const images = (image: string) => (isSquidImage(image) ? squid : undefined);
  const node = startLocalNode(
    { client, clock, child: { clock, stackId, records }, images },
    // Other users must be able to reach it, which they cannot below a folder of `mkdtemp`.
    { runtimeDir: `${folder}-pods`, logDir: join(folder, 'logs'), onError: () => {} },
  );
  closing.defer(() => node.stop());
}
