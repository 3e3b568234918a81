/** A gcp provider on the fake of Compute Engine, through the official client, in stepped time. */
import { createComputeClient } from '#agent/providers/gcp/compute-client.ts';
import { createGcpProvider } from '#agent/providers/gcp/provider.ts';
import { type ComputeOptions, startFakeCompute } from '#test/fakes/compute/server.ts';
import { configWith } from './block.ts';

export const OPERATION_MS = 5_000;
export const BOOT_MS = 8_000;
const START_MS = Date.parse('2026-01-01T00:00:00Z');

export async function openGcpWorld(options: ComputeOptions = {}) {
  let nowMs = START_MS;
  const clock = {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: async (ms: number) => {
      nowMs += ms;
    },
  };
  const compute = await startFakeCompute({
    clock,
    operationMs: OPERATION_MS,
    bootMs: BOOT_MS,
    ...options,
  });
  const lines: string[] = [];
  const write = (fields: object, message: string) =>
    void lines.push(JSON.stringify({ message, ...fields }));
  const log = { debug: write, warn: write };
  const clients: { close(): Promise<void> }[] = [];
  return {
    compute,
    clock,
    /** Log lines, the wire log apart. */
    lines,
    /** A provider without memory of those before it. */
    provider(block: object = {}, name = 'gcp-eu') {
      const config = configWith({ endpoint: compute.endpoint, ...block }, name);
      const api = createComputeClient(config.gcp, { clock, readAnswers: false });
      clients.push(api);
      return createGcpProvider(config, { api, clock, log });
    },
    pass(ms: number) {
      nowMs += ms;
      compute.project().settle();
    },
    /** Method and path of each request since the last look. */
    asked: (() => {
      let seen = 0;
      return () => {
        const fresh = compute.requests.slice(seen);
        seen = compute.requests.length;
        return fresh.map(({ method, target }) => {
          const [path = ''] = target.split('?');
          return `${method} ${path.replace(/^\/projects\/[^/]+\//, '')}`;
        });
      };
    })(),
    async close() {
      await Promise.all(clients.map((client) => client.close()));
      await compute.close();
    },
  };
}

export type GcpWorld = Awaited<ReturnType<typeof openGcpWorld>>;
