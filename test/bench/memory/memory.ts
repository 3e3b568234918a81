/**
 * What the ledger's object holds in memory when it is as full as it may be: its JavaScript heap
 * after a collection, beside that of an empty one, and the process around both.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openInspector } from '#test/workerd/inspector.ts';
import { bearer, CRAWLER_TOKEN } from '#test/workerd/tokens.ts';
import { atMost, type Figure } from '../figure.ts';
import { startEdgeServer } from '../lease/edge-server.ts';
import { startGenerator } from '../lease/generator.ts';
import type { BenchOptions, Progress } from '../options.ts';
import { residentBytes } from '../proc.ts';
import { scratchFolder } from '../scratch.ts';

/** As many as fit into one object with the leases below, of 128 MB that the platform gives it. */
const PROXIES = 25_000;
const LEASES = 50_000;
/** Requests that each have a selector or a target of their own: more than are remembered. */
const WISHES = 300;
const HEAP_MB_MAX = 100;
const MB = 1_000_000;

interface Memory {
  readonly heapMB: number;
  readonly residentMB: number;
}

export async function benchMemory(
  progress: Progress,
  { edge: root }: BenchOptions,
): Promise<Figure[]> {
  using folder = scratchFolder();
  await using generator = startGenerator();
  const measure = async (name: string, proxies: number, held: number): Promise<Memory> => {
    progress(`${name}: ${proxies} proxies, ${held} leases`);
    const dir = join(folder.path, name);
    mkdirSync(dir);
    const shape = { proxies, shards: 1, held, root, inspect: true };
    await using server = await startEdgeServer({ dir, hold: generator.hold }, shape);
    const { inspectorPort = 0, pid, url } = server.runtime;
    await wishForAll(url);
    // As it is after the fleet was taken in, with what that has left behind.
    const residentMB = residentBytes(pid) / MB;
    using inspector = await openInspector(inspectorPort);
    const heapBytes = await inspector.heapBytes(() => fetch(`${url}/healthz`));
    return { heapMB: heapBytes / MB, residentMB };
  };
  const empty = await measure('empty', 1, 1);
  const full = await measure('full', PROXIES, LEASES);
  const what = `${PROXIES.toLocaleString('en-US')} proxies, ${LEASES.toLocaleString('en-US')} leases`;
  return [
    { name: 'empty: heap of the isolate', value: empty.heapMB, unit: 'MB' },
    { name: 'empty: resident', value: empty.residentMB, unit: 'MB' },
    atMost(`${what}: heap of the isolate`, full.heapMB, 'MB', HEAP_MB_MAX),
    { name: `${what}: heap beyond the empty one`, value: full.heapMB - empty.heapMB, unit: 'MB' },
    { name: `${what}: resident`, value: full.residentMB, unit: 'MB' },
    {
      name: `${what}: resident beyond the empty one`,
      value: full.residentMB - empty.residentMB,
      unit: 'MB',
    },
  ];
}

/** Makes the ledger remember as many selectors and targets as it can, in both orders. */
async function wishForAll(url: string): Promise<void> {
  for (let wish = 0; wish < WISHES; wish++) {
    const selector = { region: `region-${wish}` };
    const target = `host-${wish}.example`;
    for (const strategy of ['least-loaded', 'spread']) {
      const response = await fetch(`${url}/v1/leases`, {
        method: 'POST',
        headers: { ...bearer(CRAWLER_TOKEN), 'content-type': 'application/json' },
        body: JSON.stringify({ selector, target, strategy }),
      });
      const text = await response.text();
      if (response.status !== 409) throw new Error(`${response.status} ${text}`);
    }
  }
}
