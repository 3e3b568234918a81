/** The Workers beside ours, under the same runtime. */
import { join } from 'node:path';
import { bundleWorker } from '#test/workerd/edge.ts';
import { startRuntime } from '#test/workerd/runtime.ts';
import type { Server, ServerDeps } from './server.ts';

export async function startWorkerServer(
  { dir }: ServerDeps,
  name: 'nothing' | 'insert',
): Promise<Server> {
  const runtime = await startRuntime({
    dir,
    worker: {
      script: await bundleWorker(join(import.meta.dirname, `workers/${name}.ts`)),
      compatibilityDate: '2026-11-01',
      compatibilityFlags: [],
      texts: {},
      objects: [{ binding: 'LEDGER', className: 'BenchObject' }],
    },
  });
  return {
    url: runtime.url,
    pids: [runtime.pid],
    refresh: async () => {},
    [Symbol.asyncDispose]: () => runtime.stop(),
  };
}
