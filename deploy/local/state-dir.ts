/**
 * The state directory: what a stack keeps between two starts. One start at a time uses it, which
 * a Unix socket in the kernel's abstract namespace guards: it goes with its process.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { errnoOf, StartFault } from './fault.ts';

export interface StateDir {
  readonly path: string;
  /** Random, made once: marks the processes of this stack. */
  readonly stackId: string;
  readonly kubeconfig: string;
  readonly agentKubeconfig: string;
  readonly providers: string;
  readonly processes: string;
  readonly logs: string;
  readonly podLogs: string;
  readonly controlPlane: string;
  readonly edgeStorage: string;
  /** What the runtime reads of the edge, with its secrets. */
  readonly edgeBuild: string;
  readonly edgeSecrets: string;
  /** Outside of the state directory: other users must be able to reach it. */
  readonly runtimeDir: string;
  /** Lets the next start have the directory. */
  unlock(): Promise<void>;
}

export interface Tokens {
  /** What crawlers show. */
  readonly discovery: string;
  /** What the agent shows. */
  readonly agent: string;
}

const tokensSchema = z.object({ discovery: z.string().min(16), agent: z.string().min(16) });
const TOKEN_BYTES = 24;
const STACK_ID_PATTERN = /^[0-9a-f]{16}$/;
/** Closed to others: the edge stores leases, and proxies with their credentials. */
const FOLDERS = ['logs', 'logs/pods', 'control-plane', 'edge'];

/** Opens, or makes, the directory; throws a `StartFault` that names the flag. */
export async function openStateDir(given: string): Promise<StateDir> {
  const path = makeFolder(given);
  const unlock = await lock(path);
  const pidFile = join(path, 'pid');
  writeFileSync(pidFile, `${process.pid}\n`);
  const stackId = openStackId(join(path, 'stack-id'));
  return {
    path,
    stackId,
    kubeconfig: join(path, 'kubeconfig'),
    agentKubeconfig: join(path, 'agent.kubeconfig'),
    providers: join(path, 'providers.yaml'),
    processes: join(path, 'processes.json'),
    logs: join(path, 'logs'),
    podLogs: join(path, 'logs', 'pods'),
    controlPlane: join(path, 'control-plane'),
    edgeStorage: join(path, 'edge'),
    edgeBuild: join(path, 'edge', 'build'),
    edgeSecrets: join(path, 'edge.env'),
    runtimeDir: join(tmpdir(), `egress-node-${stackId}`),
    async unlock() {
      rmSync(pidFile, { force: true });
      await unlock();
    },
  };
}

/** Tokens of an earlier start, so that what crawlers hold stays good; new ones otherwise. */
export function openTokens(state: Pick<StateDir, 'path'>): Tokens {
  const file = join(state.path, 'tokens.json');
  const before = readIfPresent(file);
  if (before === undefined) {
    const token = () => randomBytes(TOKEN_BYTES).toString('base64url');
    const fresh = { discovery: token(), agent: token() };
    writeSecretFile(file, JSON.stringify(fresh, null, 2));
    return fresh;
  }
  const parsed = tokensSchema.safeParse(parseJson(before));
  if (!parsed.success) {
    throw new StartFault(`${file}: needs the keys discovery and agent; delete it for new tokens`);
  }
  return parsed.data;
}

/** Writes a file that only its owner may read; a crash leaves the old one or the new, whole. */
export function writeSecretFile(path: string, text: string): void {
  const fresh = `${path}.new`;
  // A mode is only taken for a new file.
  rmSync(fresh, { force: true });
  writeFileSync(fresh, text, { mode: 0o600 });
  renameSync(fresh, path);
}

/** What an unclean end of the machine left of it would mark processes that are not ours. */
function openStackId(file: string): string {
  const before = readIfPresent(file);
  if (before !== undefined && STACK_ID_PATTERN.test(before)) return before;
  const fresh = randomBytes(8).toString('hex');
  writeSecretFile(file, fresh);
  return fresh;
}

function makeFolder(given: string): string {
  try {
    makeFolders(resolve(given));
    const path = realpathSync(given);
    const probe = join(path, '.writable');
    writeFileSync(probe, '');
    rmSync(probe);
    for (const folder of FOLDERS.map((name) => join(path, name))) {
      makeFolders(folder);
      chmodSync(folder, 0o700);
    }
    return path;
  } catch (cause) {
    const why = errnoOf(cause) ?? 'unknown error';
    throw new StartFault(`--state-dir: ${given} is not a folder that can be written (${why})`, {
      cause,
    });
  }
}

/** As `mkdir -p`. Node's own never returns where a file system answers ENOENT, as /proc does. */
function makeFolders(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  if (dirname(path) !== path) makeFolders(dirname(path));
  mkdirSync(path);
}

function lock(path: string): Promise<() => Promise<void>> {
  const name = createHash('sha256').update(path).digest('hex').slice(0, 32);
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      if (errnoOf(cause) !== 'EADDRINUSE') {
        reject(new StartFault(`--state-dir: ${path} cannot be locked`, { cause }));
        return;
      }
      const pid = readIfPresent(join(path, 'pid'))?.trim() ?? 'unknown';
      const advice = 'end it, or choose another folder';
      reject(new StartFault(`--state-dir: ${path} is in use by pid ${pid}; ${advice}`));
    });
    server.listen(`\0egress-stack/${name}`, () => {
      server.unref();
      resolve(() => new Promise((done) => server.close(() => done())));
    });
  });
}

/** One that is there but cannot be read is not taken for a missing one: tokens would change. */
function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const code = errnoOf(cause) ?? 'unknown error';
    if (code === 'ENOENT') return undefined;
    throw new StartFault(`--state-dir: ${file} cannot be read (${code})`, { cause });
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
