/**
 * How to reach the API server and with which credentials: the service account of a pod, or a
 * kubeconfig. What can rotate (token, CA, client certificate) is read again while running.
 */
import { readFile } from 'node:fs/promises';
import type { Clock } from '#shared/clock.ts';
import { loadKubeconfig } from './kubeconfig.ts';

export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

export interface RequestCredentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsMaterial;
}

export interface ClusterAccess {
  readonly server: string;
  /** Forward proxy in front of the API server. */
  readonly proxyUrl?: string;
  /** Credentials for the next request. */
  credentials(): Promise<RequestCredentials>;
  /** Called after a 401: what was read from files counts as stale. */
  refresh(): void;
}

/** Where the configuration says that the cluster is found. */
export type ClusterLocation =
  | { readonly kind: 'kubeconfig'; readonly paths: readonly string[] }
  | { readonly kind: 'in-cluster'; readonly host: string; readonly port: string };

/** The configuration of the access is wrong; the message names the file and the field. */
export class ClusterAccessError extends Error {
  override readonly name = 'ClusterAccessError';
}

const SERVICE_ACCOUNT_ROOT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** The kubelet refreshes a projected token long before it ends; client-go re-reads as often. */
const FILE_AGE_MS_MAX = 60_000;

/** Reads what `location` names; throws `ClusterAccessError` when that cannot work. */
export async function openClusterAccess(
  location: ClusterLocation,
  clock: Clock,
): Promise<ClusterAccess> {
  const files = createFileCache(clock);
  return location.kind === 'kubeconfig'
    ? loadKubeconfig(location.paths, files)
    : serviceAccountAccess(location, files, SERVICE_ACCOUNT_ROOT);
}

/** Access of a pod by its mounted service account. */
export async function serviceAccountAccess(
  location: { readonly host: string; readonly port: string },
  files: FileCache,
  root: string,
): Promise<ClusterAccess> {
  const host = location.host.includes(':') ? `[${location.host}]` : location.host;
  const credentials = async () => {
    const [token, ca] = await Promise.all([
      files.read(`${root}/token`),
      files.read(`${root}/ca.crt`),
    ]);
    return { headers: { authorization: `Bearer ${token.trim()}` }, tls: { ca } };
  };
  await credentials();
  return {
    server: `https://${host}:${location.port}`,
    credentials,
    refresh: () => files.expire(),
  };
}

export interface FileCache {
  /** Text of the file, at most a minute old. Throws `ClusterAccessError` naming the file. */
  read(path: string): Promise<string>;
  expire(): void;
}

export function createFileCache(clock: Clock): FileCache {
  const cache = new Map<string, { readonly text: string; readonly readAtMs: number }>();
  return {
    async read(path) {
      const nowMs = clock.monotonicMs();
      const cached = cache.get(path);
      if (cached !== undefined && nowMs - cached.readAtMs < FILE_AGE_MS_MAX) return cached.text;
      const text = await readFile(path, 'utf8').catch((cause: unknown) => {
        const why = cause instanceof Error ? cause.message : String(cause);
        throw new ClusterAccessError(`${path}: cannot be read: ${why}`, { cause });
      });
      cache.set(path, { text, readAtMs: nowMs });
      return text;
    },
    expire: () => cache.clear(),
  };
}
