/**
 * Databases of a benchmark's own, each with all its files in a folder and with no port: they are
 * reached by sockets in that folder. What they acknowledge is on the disk.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock as clock } from '#shared/clock.ts';
import type { Database } from './node-server.ts';

const START_MS_MAX = 20_000;
const POLL_MS = 50;
/** Where Debian keeps the programs of each version of PostgreSQL. */
const POSTGRES_VERSIONS = '/usr/lib/postgresql';

interface Spec {
  readonly program: string;
  readonly args: readonly string[];
  readonly dir: string;
  /** Line of its log that says that it serves. */
  readonly ready: RegExp;
  readonly stop: NodeJS.Signals;
  readonly user?: { readonly uid: number; readonly gid: number };
}

/** Redis as one sets it up when nothing that was acknowledged may be lost. */
export async function startRedis(dir: string): Promise<Database> {
  const socket = join(dir, 'redis.sock');
  const settings = {
    port: '0',
    unixsocket: socket,
    dir,
    appendonly: 'yes',
    appendfsync: 'always',
    save: '',
  };
  const pid = await start({
    program: 'redis-server',
    args: Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]),
    dir,
    ready: /ready to accept connections/i,
    stop: 'SIGTERM',
  });
  return { ...pid, where: socket };
}

/** PostgreSQL with memory enough, and its own promises of durability. */
export async function startPostgres(dir: string): Promise<Database> {
  const programs = postgresPrograms();
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? userOf('postgres') : undefined;
  const data = join(dir, 'data');
  if (user !== undefined) chownSync(dir, user.uid, user.gid);
  chmodSync(dir, 0o700);
  const options = ['--auth=trust', '--username=bench', '--encoding=UTF8', '--no-locale'];
  execFileSync(join(programs, 'initdb'), [`--pgdata=${data}`, ...options], {
    cwd: dir,
    stdio: 'pipe',
    ...user,
  });
  const settings = {
    listen_addresses: '',
    unix_socket_directories: dir,
    shared_buffers: '512MB',
    max_wal_size: '4GB',
    checkpoint_timeout: '30min',
  };
  const pid = await start({
    program: join(programs, 'postgres'),
    args: ['-D', data, ...Object.entries(settings).flatMap(([k, v]) => ['-c', `${k}=${v}`])],
    dir,
    ready: /database system is ready to accept connections/,
    // Ends at once, with all its children; there is nothing to keep.
    stop: 'SIGQUIT',
    ...(user === undefined ? {} : { user }),
  });
  return { ...pid, where: dir };
}

/** Programs of the newest version. */
function postgresPrograms(): string {
  try {
    const [newest] = readdirSync(POSTGRES_VERSIONS).toSorted((a, b) => Number(b) - Number(a));
    if (newest !== undefined) return join(POSTGRES_VERSIONS, newest, 'bin');
  } catch {
    // Said below.
  }
  throw new Error(`PostgreSQL is not in ${POSTGRES_VERSIONS}: apt-get install postgresql`);
}

function userOf(name: string): { uid: number; gid: number } {
  const id = (option: string) => Number(execFileSync('id', [option, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function start(spec: Spec): Promise<AsyncDisposable & { readonly pid: number }> {
  const logFile = join(spec.dir, 'log');
  const log = openSync(logFile, 'a');
  const { dir, program, args, user } = spec;
  const child = spawn(program, [...args], { cwd: dir, stdio: ['ignore', log, log], ...user });
  closeSync(log);
  const exited = new Promise<void>((done) => child.once('close', () => done()));
  const atExit = () => child.kill(spec.stop);
  process.prependOnceListener('exit', atExit);
  const stop = async () => {
    process.off('exit', atExit);
    child.kill(spec.stop);
    await exited;
  };
  await once(child, 'spawn');
  const deadlineMs = clock.monotonicMs() + START_MS_MAX;
  while (!spec.ready.test(readFileSync(logFile, 'utf8'))) {
    if (child.exitCode !== null || clock.monotonicMs() > deadlineMs) {
      await stop();
      throw new Error(`${program} did not start: ${readFileSync(logFile, 'utf8')}`);
    }
    await clock.sleep(POLL_MS);
  }
  const { pid } = child;
  if (pid === undefined) throw new Error(`${program}: no process`);
  return { pid, [Symbol.asyncDispose]: stop };
}
