/** The Workers beside ours, under the same runtime. */
import { join, resolve } from 'node:path';
import { bundleWorker } from '#deploy/local/edge/edge-worker.ts';
import { startRuntime } from '#test/workerd/runtime.ts';
import type { Server, ServerDeps } from './server.ts';

const ROOT = resolve(import.meta.dirname, '../../..');

export async function startWorkerServer(
  { dir }: ServerDeps,
  name: 'nothing' | 'insert',
): Promise<Server> {
  const runtime = await startRuntime({
    dir,
    worker: {
      script: await bundleWorker(join(import.meta.dirname, `workers/${name}.ts`), ROOT),
      compatibilityDate: '2026-11-01',
      compatibilityFlags: [],
      texts: {},
      objects: [{ binding: 'LEDGER', className: 'BenchObject', key: 'bench' }],
    },
  });
  return {
    url: runtime.url,
    pids: [runtime.pid],
    refresh: async () => {},
    [Symbol.asyncDispose]: () => runtime.stop(),
  };
}
