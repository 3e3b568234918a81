/**
 * The process: configuration, telemetry, clients and the loops of `assembly.ts`; all of it stopped
 * in reverse, within a bound.
 */
import './runtime/heap.ts';
import { randomUUID } from 'node:crypto';
import { assemble, time } from './assembly.ts';
import { type Config, readConfig, unbuiltFlags } from './config.ts';
import { ClusterAccessError } from './kube/access.ts';
import { openCluster } from './kube/cluster.ts';
import { checkProviders } from './provider-file.ts';
import { createComputeClient } from './providers/gcp/compute-client.ts';
import { createGcpProvider } from './providers/gcp/provider.ts';
import { wireLog } from './providers/gcp/wire-log.ts';
import { createKubernetesProvider } from './providers/kubernetes/provider.ts';
import { createConnections } from './providers/kvm/connections.ts';
import { createKvmProvider } from './providers/kvm/provider.ts';
import type { ProviderBuilders } from './providers/registry.ts';
import { stopOnSignals } from './runtime/stop-signals.ts';
import { supervise } from './runtime/supervise.ts';
import { startTelemetryServer } from './telemetry/server.ts';
import { createTelemetry, type Telemetry } from './telemetry/telemetry.ts';

const STOP_GRACE_MS = 10_000;

process.exit(await main());

/** Exit code: 0 after a stop, 2 for a faulty configuration, 1 for everything else. */
async function main(): Promise<number> {
  const result = readConfig({ checkProviders });
  if (result.kind === 'print') return say(process.stdout, [result.text], 0);
  if (result.kind === 'faults') return say(process.stderr, result.faults, 2);
  const { config } = result;
  const telemetry = await createTelemetry({ level: config.logLevel, format: config.logFormat });
  try {
    return await run(config, telemetry);
  } catch (error) {
    if (error instanceof ClusterAccessError) return say(process.stderr, [error.message], 2);
    telemetry.log.error({ err: error }, 'the agent cannot go on');
    return 1;
  }
}

async function run(config: Config, telemetry: Telemetry): Promise<number> {
  const { log } = telemetry;
  const stop = stopOnSignals((signal) => log.info({ signal }, 'stopping'));
  await using closing = new AsyncDisposableStack();
  const cluster = await openCluster({ ...config, ...time, observer: telemetry.cluster });
  closing.defer(() => cluster.client.close());
  const connections = createConnections({ ...time, secrets: cluster.secrets });
  closing.defer(() => connections.close());
  const builders: ProviderBuilders = {
    kubernetes: (block) => createKubernetesProvider(block, { ...cluster, log }),
    kvm: (block) =>
      createKvmProvider(block, {
        ...time,
        hosts: connections.hosts(block.kvm),
        newUuid: randomUUID,
        log,
      }),
    gcp(block) {
      const wire = wireLog(log, block.name, config);
      const api = createComputeClient(block.gcp, { ...time, ...wire });
      return createGcpProvider(block, { ...time, api, log });
    },
  };
  const loops = assemble({ config, telemetry, cluster, builders });
  const server = await startTelemetryServer(config.metricsBind, {
    metrics: telemetry.registry,
    notReady: cluster.problems,
  });
  closing.defer(() => server.close());
  const flags = unbuiltFlags(config);
  if (flags.length > 0) log.warn({ flags }, 'these flags have no effect in this build');
  const { version, edgeUrl } = config;
  log.info({ version, server: cluster.client.server, edgeUrl, telemetry: server.url }, 'started');
  const unfinished = await supervise(loops, { ...time, stop, graceMs: STOP_GRACE_MS });
  if (unfinished.length > 0) log.error({ unfinished }, 'not everything ended in time');
  else log.info({}, 'stopped');
  return unfinished.length > 0 ? 1 : 0;
}

function say(stream: NodeJS.WriteStream, lines: readonly string[], code: number): number {
  for (const line of lines) stream.write(`${line}\n`);
  return code;
}
