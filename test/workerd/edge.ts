/**
 * The edge under the real runtime, for tests and benchmarks that need its speed or its death:
 *
 *     const edge = await startEdge({ dir, shards: 4, vars: { COOLDOWN_SECONDS: '5' } });
 *     await fetch(`${edge.url}/v1/leases`, { method: 'POST', headers: bearer(CRAWLER_TOKEN), … });
 *     await edge.kill();                  // SIGKILL; resolves when workerd is gone
 *     const again = await edge.restart(); // same storage, same port, another pid
 *     await again.stop();
 *
 * What was stored stays in `dir`: a later `startEdge` on it goes on from there.
 */
import { resolve } from 'node:path';
import { edgeWorker } from '#deploy/local/edge/edge-worker.ts';
import { type Runtime, startRuntime } from './runtime.ts';
import { AGENT_TOKEN, bearer, CRAWLER_TOKEN } from './tokens.ts';

const ROOT = resolve(import.meta.dirname, '../..');

export { AGENT_TOKEN, bearer, CRAWLER_TOKEN };

export interface EdgeOptions {
  /** Holds the storage, the log and what the runtime needs beside. */
  readonly dir: string;
  /** Over those of `wrangler.toml`; secrets too, if not the ones above. */
  readonly vars?: Readonly<Record<string, string>>;
  /** `LEASE_SHARDS`. */
  readonly shards?: number;
  readonly port?: number | undefined;
  readonly inspect?: boolean | undefined;
  /** Another checkout of this repository, to compare with. */
  readonly root?: string | undefined;
}

/** Resolves when the edge listens. */
export async function startEdge(options: EdgeOptions): Promise<Runtime> {
  const { root = ROOT, shards, vars } = options;
  const worker = await edgeWorker(root, {
    DISCOVERY_TOKEN: CRAWLER_TOKEN,
    AGENT_TOKEN,
    ...(shards === undefined ? {} : { LEASE_SHARDS: String(shards) }),
    ...vars,
  });
  return await startRuntime({ ...options, worker });
}
