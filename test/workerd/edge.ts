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
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { type Runtime, startRuntime } from './runtime.ts';
import { AGENT_TOKEN, bearer, CRAWLER_TOKEN } from './tokens.ts';
import type { WorkerSpec } from './worker-config.ts';

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
  const worker = await edgeWorker(options);
  return await startRuntime({ ...options, worker });
}

/** The edge as `wrangler.toml` describes it. */
async function edgeWorker({ root = ROOT, vars, shards }: EdgeOptions): Promise<WorkerSpec> {
  // Only here, since it takes most of a second.
  const { unstable_readConfig: readConfig } = await import('wrangler');
  const config = readConfig({ config: join(root, 'wrangler.toml') });
  const texts = Object.entries(config.vars).map(([name, value]) => [name, String(value)]);
  return {
    script: await bundleWorker(config.main ?? join(root, 'edge/worker.ts'), root),
    compatibilityDate: config.compatibility_date ?? '',
    compatibilityFlags: config.compatibility_flags,
    objects: config.durable_objects.bindings.map(objectClass),
    texts: {
      ...Object.fromEntries(texts),
      DISCOVERY_TOKEN: CRAWLER_TOKEN,
      AGENT_TOKEN,
      ...(shards === undefined ? {} : { LEASE_SHARDS: String(shards) }),
      ...vars,
    },
  };
}

/** Wrangler's type of it is none. */
function objectClass(binding: { readonly name: string; readonly class_name: string }) {
  return { binding: binding.name, className: binding.class_name };
}

/** A Worker and all it imports as one module, which names its parts by their paths from `root`. */
export async function bundleWorker(entry: string, root = ROOT): Promise<string> {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    bundle: true,
    format: 'esm',
    target: 'esnext',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*', 'node:*'],
    write: false,
    logLevel: 'silent',
  });
  return outputFiles.map(({ text }) => text).join('');
}
