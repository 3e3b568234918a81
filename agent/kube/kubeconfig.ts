/**
 * A kubeconfig as an access. Static credentials (token, client certificate, password) are read
 * here; credential plugins are the business of `@kubernetes/client-node`, which is loaded only
 * then, since importing it costs 60 MB resident.
 */
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { dirname, resolve } from 'node:path';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import {
  type ClusterAccess,
  ClusterAccessError,
  type FileCache,
  type RequestCredentials,
  type TlsMaterial,
} from './access.ts';

const clusterSchema = z.object({
  server: z.string(),
  'certificate-authority': z.string().optional(),
  'certificate-authority-data': z.string().optional(),
  'insecure-skip-tls-verify': z.boolean().optional(),
  'tls-server-name': z.string().optional(),
  'proxy-url': z.string().optional(),
});
const userSchema = z.object({
  token: z.string().optional(),
  tokenFile: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  'client-certificate': z.string().optional(),
  'client-certificate-data': z.string().optional(),
  'client-key': z.string().optional(),
  'client-key-data': z.string().optional(),
  exec: z.unknown().optional(),
  'auth-provider': z.unknown().optional(),
});
const contextSchema = z.object({ cluster: z.string(), user: z.string() });
const listOf = <T extends z.ZodType>(item: T) => z.array(item).nullish();
const kubeconfigSchema = z.object({
  'current-context': z.string().optional(),
  clusters: listOf(z.object({ name: z.string(), cluster: clusterSchema })),
  contexts: listOf(z.object({ name: z.string(), context: contextSchema })),
  users: listOf(z.object({ name: z.string(), user: userSchema.nullish() })),
});

type Cluster = z.infer<typeof clusterSchema>;
type User = z.infer<typeof userSchema>;

/** What the current context points to, with paths made absolute. */
interface Selection {
  readonly context: string;
  readonly cluster: Cluster;
  readonly user: User;
}

/** As kubectl does it, the first of several files that defines a name or a context wins. */
export async function loadKubeconfig(
  paths: readonly string[],
  files: FileCache,
): Promise<ClusterAccess> {
  const { context, cluster, user } = select(paths, await Promise.all(paths.map(readKubeconfig)));
  const at = `${paths.join(', ')}: context ${context}`;
  const server = checkServer(at, cluster);
  const plugin = user.exec != null || user['auth-provider'] != null;
  const credentials = plugin
    ? await pluginCredentials(paths, context)
    : () => staticCredentials(cluster, user, files);
  await credentials();
  return {
    server,
    ...(cluster['proxy-url'] === undefined ? {} : { proxyUrl: cluster['proxy-url'] }),
    credentials,
    refresh: () => files.expire(),
  };
}

async function readKubeconfig(path: string): Promise<z.infer<typeof kubeconfigSchema>> {
  const refuse = (why: string, cause?: unknown): never => {
    throw new ClusterAccessError(`${path}: ${why}`, { cause });
  };
  const text = await readFile(path, 'utf8').catch((cause: Error) =>
    refuse(`cannot be read: ${cause.message}`, cause),
  );
  let raw: unknown;
  try {
    raw = parseYaml(text);
  } catch {
    // The parser quotes the lines around a fault, which may hold a token.
    refuse('is not valid YAML');
  }
  const parsed = kubeconfigSchema.safeParse(raw);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return refuse(`is not a kubeconfig: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const base = dirname(path);
  for (const { cluster } of parsed.data.clusters ?? []) absolute(cluster, CLUSTER_PATHS, base);
  for (const { user } of parsed.data.users ?? []) if (user) absolute(user, USER_PATHS, base);
  return parsed.data;
}

const CLUSTER_PATHS = ['certificate-authority'] as const;
const USER_PATHS = ['tokenFile', 'client-certificate', 'client-key'] as const;

function absolute<K extends string>(
  record: Partial<Record<K, string | undefined>>,
  fields: readonly K[],
  base: string,
): void {
  for (const field of fields) {
    const value = record[field];
    if (value !== undefined) record[field] = resolve(base, value);
  }
}

function select(
  paths: readonly string[],
  configs: readonly z.infer<typeof kubeconfigSchema>[],
): Selection {
  const at = paths.join(', ');
  const missing = (what: string): never => {
    throw new ClusterAccessError(`${at}: ${what}`);
  };
  const context =
    configs.map((config) => config['current-context']).find(Boolean) ??
    missing('no current-context is set');
  const find = <T extends { name: string }>(
    kind: 'contexts' | 'clusters' | 'users',
    lists: readonly (readonly T[] | null | undefined)[],
    name: string,
  ): T =>
    lists.flatMap((list) => list ?? []).find((item) => item.name === name) ??
    missing(`${kind}: there is no entry named ${name}`);
  const chosen = find(
    'contexts',
    configs.map((config) => config.contexts),
    context,
  ).context;
  const { cluster } = find(
    'clusters',
    configs.map((config) => config.clusters),
    chosen.cluster,
  );
  const { user } = find(
    'users',
    configs.map((config) => config.users),
    chosen.user,
  );
  return { context, cluster, user: user ?? userSchema.parse({}) };
}

function checkServer(at: string, cluster: Cluster): string {
  const url = URL.parse(cluster.server);
  if (url === null || !['https:', 'http:'].includes(url.protocol)) {
    throw new ClusterAccessError(`${at}: server: ${cluster.server} is not an http(s) URL`);
  }
  const local = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url.protocol === 'http:' && !local && cluster['insecure-skip-tls-verify'] !== true) {
    throw new ClusterAccessError(
      `${at}: server: plain http would send the credentials in the clear; use https`,
    );
  }
  return cluster.server;
}

async function staticCredentials(
  cluster: Cluster,
  user: User,
  files: FileCache,
): Promise<RequestCredentials> {
  const pem = async (data: string | undefined, path: string | undefined) =>
    data !== undefined
      ? Buffer.from(data, 'base64').toString('utf8')
      : path === undefined
        ? undefined
        : files.read(path);
  const [ca, cert, key, token] = await Promise.all([
    pem(cluster['certificate-authority-data'], cluster['certificate-authority']),
    pem(user['client-certificate-data'], user['client-certificate']),
    pem(user['client-key-data'], user['client-key']),
    user.tokenFile === undefined ? user.token : files.read(user.tokenFile),
  ]);
  return {
    headers: authorization(token?.trim(), user),
    tls: {
      ...serverVerification(cluster),
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  };
}

function serverVerification(cluster: Cluster): TlsMaterial {
  return {
    ...(cluster['tls-server-name'] === undefined ? {} : { servername: cluster['tls-server-name'] }),
    ...(cluster['insecure-skip-tls-verify'] === true ? { rejectUnauthorized: false } : {}),
  };
}

function authorization(token: string | undefined, user: User): Record<string, string> {
  if (token !== undefined && token !== '') return { authorization: `Bearer ${token}` };
  if (user.username === undefined) return {};
  const pair = Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64');
  return { authorization: `Basic ${pair}` };
}

/** Credentials by an exec or auth-provider plugin, with the library's caching of them. */
async function pluginCredentials(
  paths: readonly string[],
  context: string,
): Promise<() => Promise<RequestCredentials>> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  const [first, ...others] = paths;
  if (first !== undefined) config.loadFromFile(first);
  for (const path of others) {
    const other = new KubeConfig();
    other.loadFromFile(path);
    config.mergeConfig(other, true);
  }
  config.setCurrentContext(context);
  return async () => {
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    return {
      headers: Object.fromEntries(
        Object.entries(options.headers ?? {}).map(([name, value]) => [name, String(value)]),
      ),
      tls: {
        ...text('ca', options.ca),
        ...text('cert', options.cert),
        ...text('key', options.key),
        ...text('servername', options.servername),
        ...(options.rejectUnauthorized === false ? { rejectUnauthorized: false } : {}),
      },
    };
  };
}

function text<K extends string>(name: K, value: unknown): { [P in K]?: string } {
  const found: { [P in K]?: string } = {};
  if (typeof value === 'string' || Buffer.isBuffer(value)) found[name] = String(value);
  return found;
}
