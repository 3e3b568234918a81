/**
 * The agent as `agent/main.ts` runs it, but its machines live in memory and come up at once: what
 * is measured is the operator. Its parent asks by IPC for what it has used.
 */
import '#agent/runtime/heap.ts';
import { assemble, time } from '#agent/assembly.ts';
import { readConfig } from '#agent/config.ts';
import { openCluster } from '#agent/kube/cluster.ts';
import { checkProviders } from '#agent/provider-file.ts';
import { supervise } from '#agent/runtime/supervise.ts';
import { createTelemetry } from '#agent/telemetry/telemetry.ts';
import { MemoryProvider } from '#test/fakes/memory-provider.ts';

/** What the parent is told. */
export interface Usage {
  /** User and system time so far. */
  readonly cpuMs: number;
  readonly rssBytes: number;
  /** Text of `/metrics`. */
  readonly metrics: string;
}

/** Every address of it answers, as the whole of 127.0.0.0/8 is this machine. */
const ADDRESS_OF = (made: number) => `127.1.${made >> 8}.${made & 0xff}`;

/** Out of the way: a limit is not what is measured. */
const CREATIONS_PER_MINUTE = 100_000;

const stop = new AbortController();
process.on('SIGTERM', () => stop.abort(new Error('stopped')));
process.exitCode = await main();

async function main(): Promise<number> {
  const result = readConfig({ checkProviders });
  if (result.kind !== 'config') {
    process.stderr.write(`${JSON.stringify(result)}\n`);
    return 2;
  }
  const { config } = result;
  const telemetry = await createTelemetry({ level: config.logLevel, format: config.logFormat });
  process.on('message', async () => {
    const { user, system } = process.cpuUsage();
    const usage: Usage = {
      cpuMs: (user + system) / 1000,
      rssBytes: process.memoryUsage.rss(),
      metrics: await telemetry.registry.metrics(),
    };
    process.send?.(usage);
  });
  const cluster = await openCluster({ ...config, ...time, observer: telemetry.cluster });
  const inMemory = ({ name }: { readonly name: string }) =>
    Object.assign(new MemoryProvider({ name, addressOf: ADDRESS_OF, nowMs: time.clock.now }), {
      creationsPerMinute: CREATIONS_PER_MINUTE,
    });
  const builders = { kubernetes: inMemory, gcp: inMemory };
  const loops = assemble({ config, telemetry, cluster, builders });
  await supervise(loops, { ...time, stop, graceMs: 5_000 });
  await cluster.client.close();
  process.disconnect();
  return 0;
}
