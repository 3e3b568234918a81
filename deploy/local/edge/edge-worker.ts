/** The edge as `wrangler.toml` describes it, built for the Workers runtime itself. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { ObjectClass, WorkerSpec } from './worker-config.ts';

/**
 * @param root of the checkout
 * @param texts settings and secrets, over the `vars` of `wrangler.toml`
 */
export async function edgeWorker(
  root: string,
  texts: Readonly<Record<string, string>>,
): Promise<WorkerSpec> {
  // Only here, since it takes most of a second.
  const { unstable_readConfig: readConfig } = await import('wrangler');
  const config = readConfig({ config: join(root, 'wrangler.toml') });
  const vars = Object.entries(config.vars).map(([name, value]) => [name, String(value)]);
  return {
    script: await bundleWorker(config.main ?? join(root, 'edge/worker.ts'), root),
    compatibilityDate: config.compatibility_date ?? '',
    compatibilityFlags: config.compatibility_flags,
    objects: config.durable_objects.bindings.map(objectClassOf(config.name)),
    texts: { ...Object.fromEntries(vars), ...texts },
  };
}

/** The key is as wrangler has it, so that each finds what the other has stored. */
function objectClassOf(worker: string | undefined) {
  // Wrangler's type of it is none.
  return ({ name, class_name: className }: { name: string; class_name: string }): ObjectClass => ({
    binding: name,
    className,
    key: `${worker}-${className}`,
  });
}

/** A Worker and all it imports as one module, which names its parts by their paths from `root`. */
export async function bundleWorker(entry: string, root: string): Promise<string> {
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

/** The runtime. Its package, which is JavaScript without types, exports the path of the program. */
export function workerdProgram(): string {
  const exported: { readonly default?: unknown } = createRequire(import.meta.url)('workerd');
  if (typeof exported.default !== 'string') throw new Error('the package workerd has no program');
  return exported.default;
}
