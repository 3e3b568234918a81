/** The parent's side of the crawlers in `load.ts`. */
import { fork } from 'node:child_process';
import { on, once } from 'node:events';
import { join } from 'node:path';
import { cpuMsOf } from '../proc.ts';
import type { LoadResult, Message, Order } from './load.ts';
import type { Server } from './server.ts';

/** Far above what any order takes. */
const ORDER_MS_MAX = 180_000;

export interface Measurement extends LoadResult {
  /** Of the servers, for each request within the window. */
  readonly cpuUsPerRequest: number;
}

export interface RunOptions {
  readonly connections: number;
  readonly warmUpMs: number;
  readonly windowMs: number;
}

export interface Generator extends AsyncDisposable {
  /** Acquires leases and keeps them. */
  hold(url: string, leases: number): Promise<void>;
  /** Rejects when a single request fails. */
  run(server: Pick<Server, 'url' | 'pids'>, options: RunOptions): Promise<Measurement>;
}

export function startGenerator(): Generator {
  const child = fork(join(import.meta.dirname, 'load.ts'), { stdio: ['ignore', 2, 2, 'ipc'] });
  const exited = once(child, 'exit');
  const atExit = () => child.kill('SIGKILL');
  process.prependOnceListener('exit', atExit);

  async function* messages(order: Order): AsyncGenerator<Message> {
    const signal = AbortSignal.timeout(ORDER_MS_MAX);
    const ended = exited.then(() => Promise.reject(new Error('the load generator died')));
    ended.catch(() => undefined);
    const coming = on(child, 'message', { signal });
    child.send(order);
    try {
      for (;;) {
        const { value } = await Promise.race([coming.next(), ended]);
        const [message]: Message[] = value ?? [];
        if (message === undefined) throw new Error('an empty message');
        if (message.kind === 'failed') {
          const { faults } = message;
          throw new Error(`${faults.length} requests failed, the first: ${faults[0]}`);
        }
        yield message;
        if (message.kind !== 'begin') return;
      }
    } finally {
      await coming.return?.();
    }
  }

  return {
    async hold(url, leases) {
      for await (const _ of messages({ kind: 'hold', url, leases }));
    },
    async run(server, options) {
      let beginMs = 0;
      for await (const message of messages({ kind: 'run', url: server.url, ...options })) {
        const cpuMs = cpuMsOf(server.pids);
        if (message.kind === 'begin') beginMs = cpuMs;
        if (message.kind !== 'end') continue;
        const cpuUsPerRequest = ((cpuMs - beginMs) * 1000) / message.result.requests;
        return { ...message.result, cpuUsPerRequest };
      }
      throw new Error('the load generator did not end its window');
    },
    async [Symbol.asyncDispose]() {
      process.off('exit', atExit);
      child.disconnect();
      await exited;
    },
  };
}
