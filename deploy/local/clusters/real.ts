/**
 * Somebody's cluster, by a kubeconfig. Its own nodes run the pods; the edge of this machine must be
 * reachable from them for anything but External proxies on this machine.
 */
import { accessSync, constants } from 'node:fs';
import { resolve } from 'node:path';
import { reasonOf, StartFault } from '../fault.ts';
import { createKubeClient, type KubeAccess } from '../kube/client.ts';
import type { Cluster } from './cluster.ts';

const REACH_TIMEOUT_MS = 4_000;

/** Opens a kubeconfig and asks the server for its version, so that a dead one is told at once. */
export async function openRealCluster(given: string, signal: AbortSignal): Promise<Cluster> {
  const path = resolve(given);
  const access = await readAccess(path);
  const client = createKubeClient(access);
  try {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(REACH_TIMEOUT_MS)]);
    await client.request({ path: '/version', signal: deadline });
  } catch (cause) {
    if (signal.aborted) throw signal.reason;
    throw new StartFault(`--kubeconfig: ${access.server} does not answer: ${reasonOf(cause)}`, {
      cause,
    });
  } finally {
    await client.close();
  }
  const noop = async () => {};
  return { access, kubeconfig: path, agentKubeconfig: path, needsNode: false, close: noop };
}

async function readAccess(path: string): Promise<KubeAccess> {
  try {
    accessSync(path, constants.R_OK);
  } catch (cause) {
    throw new StartFault(`--kubeconfig: ${path} cannot be read`, { cause });
  }
  // A second of start-up time, which only this kind of cluster needs.
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  try {
    config.loadFromFile(path);
  } catch (cause) {
    // Not the library's message: it can quote the file, which holds credentials.
    throw new StartFault(`--kubeconfig: ${path} is not a kubeconfig`, { cause });
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    throw new StartFault(`--kubeconfig: ${path} has no current context with a cluster`);
  }
  const tls = await tlsOf(config, path);
  return {
    server: cluster.server.replace(/\/+$/, ''),
    insecure: cluster.skipTLSVerify === true,
    ...tls,
    headers: async () => {
      const options: { headers?: Record<string, string> } = {};
      await config.applyToHTTPSOptions(options);
      return options.headers ?? {};
    },
  };
}

type Pem = { caPem?: string; certPem?: string; keyPem?: string };

async function tlsOf(config: Config, path: string): Promise<Pem> {
  const options: { ca?: unknown; cert?: unknown; key?: unknown } = {};
  try {
    await config.applyToHTTPSOptions(options);
  } catch (cause) {
    throw new StartFault(`--kubeconfig: ${path}: credentials cannot be had`, { cause });
  }
  const pem: Pem = {};
  const text = (value: unknown) =>
    typeof value === 'string' || Buffer.isBuffer(value) ? value.toString() : undefined;
  const [ca, cert, key] = [text(options.ca), text(options.cert), text(options.key)];
  if (ca !== undefined) pem.caPem = ca;
  if (cert !== undefined) pem.certPem = cert;
  if (key !== undefined) pem.keyPem = key;
  return pem;
}

interface Config {
  applyToHTTPSOptions(options: object): Promise<void>;
}
