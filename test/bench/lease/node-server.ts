/** The servers beside ours that run in plain Node, with their databases. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startPostgres, startRedis } from './databases.ts';
import type { Server, ServerDeps } from './server.ts';

/** Long enough to fill 100,000 proxies into a database. */
const START_MS_MAX = 120_000;

/** A database process that is ours. */
export interface Database extends AsyncDisposable {
  readonly pid: number;
  /** Its socket, or the folder of it. */
  readonly where: string;
}

export type NodeLedger = 'postgres' | 'redis' | 'scan';

export async function startNodeServer(
  { dir }: ServerDeps,
  ledger: NodeLedger,
  proxies: number,
): Promise<Server> {
  mkdirSync(dir, { recursive: true });
  await using starting = new AsyncDisposableStack();
  const database = await startDatabase(ledger, dir);
  if (database !== undefined) starting.use(database);
  const file = join(import.meta.dirname, 'node-process.ts');
  const child = fork(file, [ledger, String(proxies), database?.where ?? ''], {
    env: { ...process.env, NODE_ENV: 'production' },
    stdio: ['ignore', 2, 2, 'ipc'],
  });
  const exited = once(child, 'exit');
  const atExit = () => child.kill('SIGKILL');
  process.prependOnceListener('exit', atExit);
  starting.defer(async () => {
    process.off('exit', atExit);
    child.kill('SIGKILL');
    await exited;
  });
  const ended = exited.then(() => Promise.reject(new Error(`${ledger}: the server ended`)));
  ended.catch(() => undefined);
  const told = once(child, 'message', { signal: AbortSignal.timeout(START_MS_MAX) });
  const [message]: { readonly port: number }[] = await Promise.race([told, ended]);
  const { pid } = child;
  if (message === undefined || pid === undefined) throw new Error(`${ledger}: no server`);
  const open = starting.move();
  return {
    url: `http://127.0.0.1:${message.port}`,
    pids: [pid, ...(database === undefined ? [] : [database.pid])],
    refresh: async () => {},
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

async function startDatabase(ledger: NodeLedger, dir: string): Promise<Database | undefined> {
  switch (ledger) {
    case 'postgres':
      return await startPostgres(dir);
    case 'redis':
      return await startRedis(dir);
    case 'scan':
      return undefined;
  }
}
