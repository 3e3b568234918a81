/**
 * The control plane of the local stack: an API server in this process, with its storage, its
 * certificates and its users. It speaks to kubectl and to clients as a cluster's API server does.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import type { Clock, Random } from '#shared/clock.ts';
import { createDefaultRoles } from './bootstrap.ts';
import { startControllers } from './controllers/start.ts';
import { createAuthorizer } from './http/authorizer.ts';
import { type Credentials, loadCredentials } from './http/credentials.ts';
import { type ApiServer, type ApiServerDeps, startApiServer } from './http/server.ts';
import { ADMIN, createAuthenticator, serviceAccountUser } from './http/users.ts';
import { kubeconfigText } from './kubeconfig.ts';
import { builtinResources } from './registry/builtin.ts';
import { ResourceRegistry } from './registry/resource-registry.ts';
import { ObjectStore } from './storage/object-store.ts';
import { openSqliteJournal } from './storage/sqlite-journal.ts';

const DATABASE_FILE = 'objects.sqlite';
const CLUSTER_NAME = 'egress-local';
const OWNER_ONLY = 0o700;
const RANDOM_STEPS = 2 ** 32;
/** The agent runs as this service account; deploy/rbac says what it may do. */
const AGENT = { namespace: 'crawl-system', name: 'egress-agent' };

export interface ControlPlaneOptions {
  /** Holds objects and credentials; absent: everything is in memory. */
  readonly stateDir?: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly host?: string;
  readonly clock: Clock;
  readonly random?: Random;
  /** Makes UIDs. */
  readonly newId?: () => string;
  /** Receives one line for each request. */
  readonly log?: (line: string) => void;
  /** Path of what a pod writes, for `kubectl logs`; undefined while there is none. */
  readonly podLog?: (namespace: string, name: string) => string | undefined;
}

export type ControlPlaneUser = 'admin' | 'agent';

export interface ControlPlane {
  readonly url: string;
  readonly caPem: string;
  readonly port: number;
  readonly adminToken: string;
  readonly agentToken: string;
  /** YAML text of a kubeconfig for one of the users. */
  kubeconfig(user: ControlPlaneUser): string;
  /** Forgets the history of changes: watches from an older version are answered 410. */
  compact(): void;
  /** Ends open watches, answers what runs and stops listening. */
  close(): Promise<void>;
}

/** Starts the control plane; it serves when the promise resolves. */
export async function createControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { stateDir, host = '127.0.0.1', clock } = options;
  if (stateDir !== undefined) mkdirSync(stateDir, { recursive: true, mode: OWNER_ONLY });
  const credentials = await loadCredentials(stateDir, host, clock.now());
  const store = openStore(stateDir);
  let core: Core | undefined;
  let server: ApiServer;
  try {
    core = createCore(store, credentials, options);
    server = await startApiServer({ ...core, credentials, clock }, host, options.port);
  } catch (error) {
    core?.stopControllers();
    store.close();
    throw error;
  }
  const { stopControllers } = core;
  const url = `https://${isIPv6(host) ? `[${host}]` : host}:${server.port}`;
  return {
    url,
    port: server.port,
    caPem: credentials.caPem,
    adminToken: credentials.adminToken,
    agentToken: credentials.agentToken,
    kubeconfig: (user) => kubeconfigFor(user, url, credentials),
    compact: () => store.compact(),
    close: async () => {
      await server.close();
      stopControllers();
      store.close();
    },
  };
}

interface Core extends Omit<ApiServerDeps, 'credentials' | 'clock'> {
  readonly stopControllers: () => void;
}

/** Everything behind the server: resources, verbs, controllers, users and what they may do. */
function createCore(
  store: ObjectStore,
  credentials: Credentials,
  { clock, random = cryptoRandom, newId = randomUUID, log, podLog }: ControlPlaneOptions,
): Core {
  const registry = new ResourceRegistry(builtinResources());
  const controllers = startControllers({ store, registry, clock, random, newId });
  createDefaultRoles(registry, controllers.verbs);
  const tokens = new Map([
    [credentials.adminToken, ADMIN],
    [credentials.agentToken, serviceAccountUser(AGENT.namespace, AGENT.name)],
  ]);
  return {
    verbs: controllers.verbs,
    registry,
    random,
    authorizer: createAuthorizer(store),
    authenticate: createAuthenticator(tokens),
    log: log ?? (() => undefined),
    podLog: podLog ?? (() => undefined),
    stopControllers: controllers.stop,
  };
}

function cryptoRandom(): number {
  return randomInt(RANDOM_STEPS) / RANDOM_STEPS;
}

function openStore(stateDir: string | undefined): ObjectStore {
  if (stateDir === undefined) return new ObjectStore();
  const journal = openSqliteJournal(join(stateDir, DATABASE_FILE));
  try {
    return new ObjectStore({ journal });
  } catch (error) {
    journal.close();
    throw error;
  }
}

function kubeconfigFor(
  user: ControlPlaneUser,
  server: string,
  { caPem, adminToken, agentToken }: Credentials,
): string {
  const token = user === 'admin' ? adminToken : agentToken;
  return kubeconfigText({ cluster: CLUSTER_NAME, server, caPem, user, token });
}
