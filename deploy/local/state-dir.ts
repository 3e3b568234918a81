/**
 * The state directory: what a stack keeps between two starts. One start at a time uses it, which
 * a Unix socket in the kernel's abstract namespace guards: it goes with its process.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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

/** Opens, or makes, the directory; throws a `StartFault` that names the flag. */
export async function openStateDir(given: string): Promise<StateDir> {
  const path = makeFolder(given);
  const unlock = await lock(path);
  const pidFile = join(path, 'pid');
  writeFileSync(pidFile, `${process.pid}\n`);
  const stackId = readOrMake(join(path, 'stack-id'), () => randomBytes(8).toString('hex'));
  for (const folder of ['logs', 'logs/pods', 'control-plane', 'edge']) {
    mkdirSync(join(path, folder), { recursive: true });
  }
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
  const fresh = () => {
    const token = () => randomBytes(TOKEN_BYTES).toString('base64url');
    return JSON.stringify({ discovery: token(), agent: token() }, null, 2);
  };
  const parsed = tokensSchema.safeParse(parseJson(readOrMake(file, fresh)));
  if (!parsed.success) {
    throw new StartFault(`${file}: needs the keys discovery and agent; delete it for new tokens`);
  }
  return parsed.data;
}

/** Writes a file that only its owner may read. */
export function writeSecretFile(path: string, text: string): void {
  // A mode is only taken for a new file.
  rmSync(path, { force: true });
  writeFileSync(path, text, { mode: 0o600 });
}

function makeFolder(given: string): string {
  try {
    mkdirSync(given, { recursive: true });
    const path = realpathSync(given);
    const probe = join(path, '.writable');
    writeFileSync(probe, '');
    rmSync(probe);
    return path;
  } catch (cause) {
    const why = errnoOf(cause) ?? 'unknown error';
    throw new StartFault(`--state-dir: ${given} is not a folder that can be written (${why})`, {
      cause,
    });
  }
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
      const pid = readOrMake(join(path, 'pid'), () => undefined)?.trim() ?? 'unknown';
      const advice = 'end it, or choose another folder';
      reject(new StartFault(`--state-dir: ${path} is in use by pid ${pid}; ${advice}`));
    });
    server.listen(`\0egress-stack/${name}`, () => {
      server.unref();
      resolve(() => new Promise((done) => server.close(() => done())));
    });
  });
}

function readOrMake(file: string, make: () => string): string;
function readOrMake(file: string, make: () => undefined): string | undefined;
function readOrMake(file: string, make: () => string | undefined): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    const text = make();
    if (text !== undefined) writeSecretFile(file, text);
    return text;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
