/**
 * A real `kube-apiserver` with `etcd`, from the folder that `KUBEBUILDER_ASSETS` names. There is no
 * controller manager: what only it does (default service accounts, garbage collection) is missing,
 * as it is for every test that runs against these two programs.
 */
import { generateKeyPairSync } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { loadCredentials } from '../control-plane/http/credentials.ts';
import { kubeconfigText } from '../control-plane/kubeconfig.ts';
import { StartFault } from '../fault.ts';
import { createKubeClient, tokenAccess } from '../kube/client.ts';
import { type Part, type PartDeps, startPart, whenAnswering } from '../part.ts';
import { choosePort, LOOPBACK } from '../ports.ts';
import { isProgram } from '../process/program.ts';
import { type StateDir, writeSecretFile } from '../state-dir.ts';
import type { Cluster } from './cluster.ts';

const STOP_GRACE_MS = 5_000;
const POLL_MS = 100;
const START_MS_MAX = 60_000;

export interface AssetFiles {
  readonly etcdData: string;
  readonly certificate: string;
  readonly key: string;
  readonly tokens: string;
  /** Signs service account tokens; RSA, as the server wants it. */
  readonly serviceAccountKey: string;
}

/** Command line of `etcd`, on two ports of 127.0.0.1. */
export function etcdArgs(files: AssetFiles, clientPort: number, peerPort: number): string[] {
  const client = `http://${LOOPBACK}:${clientPort}`;
  const peer = `http://${LOOPBACK}:${peerPort}`;
  return [
    `--data-dir=${files.etcdData}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
  ];
}

/** Command line of `kube-apiserver`. */
export function apiServerArgs(files: AssetFiles, port: number, etcdPort: number): string[] {
  return [
    `--etcd-servers=http://${LOOPBACK}:${etcdPort}`,
    `--bind-address=${LOOPBACK}`,
    `--secure-port=${port}`,
    // 127.0.0.1 is no address for the endpoints of the `kubernetes` service.
    '--endpoint-reconciler-type=none',
    '--service-cluster-ip-range=10.0.0.0/24',
    `--tls-cert-file=${files.certificate}`,
    `--tls-private-key-file=${files.key}`,
    `--token-auth-file=${files.tokens}`,
    '--authorization-mode=RBAC',
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${files.serviceAccountKey}`,
    `--service-account-signing-key-file=${files.serviceAccountKey}`,
    // It would refuse pods until a controller manager has made their service accounts.
    '--disable-admission-plugins=ServiceAccount',
  ];
}

/** Lines of the token file: token, user, uid, groups. */
export function tokenLines(adminToken: string, agentToken: string): string {
  const agent = 'system:serviceaccount:crawl-system:egress-agent';
  const groups = 'system:serviceaccounts,system:serviceaccounts:crawl-system';
  return `${adminToken},admin,admin,"system:masters"\n${agentToken},${agent},agent,"${groups}"\n`;
}

/** Starts both and waits until the server is ready. */
export async function openAssetsCluster(
  deps: PartDeps,
  options: { folder: string; port: number; state: StateDir; env: Readonly<Record<string, string>> },
  signal: AbortSignal,
): Promise<Cluster> {
  const { folder, port, state, env } = options;
  for (const program of ['etcd', 'kube-apiserver']) requireProgram(folder, program);
  const { files, caPem, adminToken, agentToken } = await prepareFiles(deps, state);
  const [clientPort, peerPort] = await Promise.all([choosePort('etcd', 0), choosePort('etcd', 0)]);
  const parts: Part[] = [];
  const start = (name: string, args: string[]) => {
    parts.unshift(
      startPart(deps, { name, command: join(folder, name), args, cwd: state.path, env }),
    );
  };
  const close = async () => {
    for (const part of parts) await part.stop(STOP_GRACE_MS);
  };
  const url = `https://${LOOPBACK}:${port}`;
  const access = tokenAccess(url, caPem, adminToken);
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(START_MS_MAX)]);
  try {
    start('etcd', etcdArgs(files, clientPort, peerPort));
    await whenAnswering(deps.clock, `http://${LOOPBACK}:${clientPort}/health`, deadline);
    start('kube-apiserver', apiServerArgs(files, port, clientPort));
    await whenServing(deps, access, deadline);
  } catch (cause) {
    const tail = parts[0]?.tail() ?? [];
    await close();
    signal.throwIfAborted();
    const lines = ['KUBEBUILDER_ASSETS: the API server did not come up', ...tail];
    throw new StartFault(lines.join('\n'), { cause });
  }
  const entry = { cluster: 'egress-local', server: url, caPem };
  const kubeconfigOf = (user: string, token: string) => kubeconfigText({ ...entry, user, token });
  writeSecretFile(state.kubeconfig, kubeconfigOf('admin', adminToken));
  writeSecretFile(state.agentKubeconfig, kubeconfigOf('agent', agentToken));
  const { kubeconfig, agentKubeconfig } = state;
  return { access, kubeconfig, agentKubeconfig, needsNode: true, close };
}

async function prepareFiles({ clock }: PartDeps, state: StateDir) {
  const folder = join(state.path, 'envtest');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const files: AssetFiles = {
    etcdData: join(folder, 'etcd'),
    certificate: join(folder, 'tls.crt'),
    key: join(folder, 'tls.key'),
    tokens: join(folder, 'tokens.csv'),
    serviceAccountKey: join(folder, 'service-account.key'),
  };
  const credentials = await loadCredentials(folder, LOOPBACK, clock.now());
  writeFileSync(files.certificate, credentials.certificatePem);
  writeSecretFile(files.key, credentials.keyPem);
  writeSecretFile(files.tokens, tokenLines(credentials.adminToken, credentials.agentToken));
  if (!existsSync(files.serviceAccountKey)) writeSecretFile(files.serviceAccountKey, rsaKey());
  return { files, ...credentials };
}

async function whenServing(
  { clock }: PartDeps,
  access: ReturnType<typeof tokenAccess>,
  signal: AbortSignal,
): Promise<void> {
  const client = createKubeClient(access);
  try {
    for (;;) {
      // The default namespace appears last, and is where the samples go.
      const path = '/api/v1/namespaces/default';
      const found = await client.request({ path, signal }).catch(() => undefined);
      if (found !== undefined) return;
      await clock.sleep(POLL_MS, signal);
    }
  } finally {
    await client.close();
  }
}

function requireProgram(folder: string, program: string): void {
  if (!isProgram(join(folder, program))) {
    throw new StartFault(`KUBEBUILDER_ASSETS: ${folder} has no program ${program}`);
  }
}

function rsaKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}
