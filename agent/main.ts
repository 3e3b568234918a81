/**
 * Composition root: the one file that knows every part. Configuration, telemetry, clients,
 * providers, loops; all of it stopped in reverse, within a bound.
 */
import './runtime/heap.ts';
import { randomInt, randomUUID } from 'node:crypto';
import { systemClock as clock } from '#shared/clock.ts';
import { objectKey } from '#shared/crd/object-meta.ts';
import { type Config, readConfig, unbuiltFlags } from './config.ts';
import { proxiesOfSecret } from './controller/cloud-init.ts';
import { credentialsOf } from './controller/credentials.ts';
import { createReconcile } from './controller/reconcile.ts';
import { createHealthEngine } from './health/engine.ts';
import { createProbe } from './health/probe.ts';
import { probeTarget } from './health/targets.ts';
import { openInventory } from './inventory/inventory.ts';
import { ClusterAccessError } from './kube/access.ts';
import { type Cluster, openCluster } from './kube/cluster.ts';
import { checkProviders, openProviderFile } from './provider-file.ts';
import { createKubernetesProvider } from './providers/kubernetes/provider.ts';
import { stopOnSignals } from './runtime/stop-signals.ts';
import { supervise } from './runtime/supervise.ts';
import { createWorkQueue } from './runtime/work-queue.ts';
import { runWorkers } from './runtime/workers.ts';
import { startTelemetryServer } from './telemetry/server.ts';
import { createTelemetry, type Telemetry } from './telemetry/telemetry.ts';

const WORKERS = 3;
const STOP_GRACE_MS = 10_000;
const random = () => randomInt(2 ** 32) / 2 ** 32;
const time = { clock, random };
type Closing = AsyncDisposableStack;
type Parts = { config: Config; telemetry: Telemetry; cluster: Cluster; closing: Closing };

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
  const { loops, feedback } = assemble({ config, telemetry, cluster, closing });
  telemetry.collect({ proxies: cluster.proxies, feedback, clock });
  const server = await startTelemetryServer(config.metricsBind, {
    metrics: telemetry.registry,
    notReady: cluster.problems,
  });
  closing.defer(() => server.close());
  const flags = unbuiltFlags(config);
  if (flags.length > 0) log.warn({ flags }, 'these flags have no effect in this build');
  const { version, edgeUrl } = config;
  log.info({ version, server: cluster.client.server, edgeUrl, telemetry: server.url }, 'started');
  const unfinished = await supervise(loops, { clock, stop, graceMs: STOP_GRACE_MS });
  if (unfinished.length > 0) log.error({ unfinished }, 'not everything ended in time');
  else log.info({}, 'stopped');
  return unfinished.length > 0 ? 1 : 0;
}

/** Notices between the parts carry keys; whoever gets one looks at what is true then. */
function assemble({ config, telemetry, cluster, closing }: Parts) {
  const { proxies, cloudInitSecrets, secrets, events, writer } = cluster;
  const credentials = (namespace: string, name: string) =>
    credentialsOf(secrets.peek(namespace, name));
  const queue = createWorkQueue({ ...time, observer: telemetry.queue });
  closing.defer(() => queue.close());

  const providers = openProviderFile({
    file: config.providers,
    builders: { kubernetes: (block) => createKubernetesProvider(block, cluster) },
    requests: telemetry.provider,
    onReload: () => {
      for (const proxy of proxies.list()) queue.add(objectKey(proxy.metadata));
    },
    observer: telemetry.providerFile,
    ...time,
  });
  const echoUrl = `${config.edgeUrl}/v1/echo`;
  const target = (proxy: ReturnType<typeof proxies.get>) =>
    proxy && probeTarget(proxy, { echoUrl, credentials });
  const health = createHealthEngine({
    targets: {
      list: () => [...proxies.list()].map(target).filter((each) => each !== undefined),
      get: (key) => target(proxies.get(key)),
    },
    probe: createProbe({ clock }),
    observer: telemetry.probe,
    notify: (key) => {
      queue.add(key);
      inventory.notify();
    },
    ...time,
  });
  const inventory = openInventory({
    ...config,
    ...time,
    proxies,
    credentials,
    verdict: (key) => health.verdict(key),
    // Until replicas elect a leader, the process that started last speaks for the cluster: seconds
    // since the epoch grow from start to start, and a replaced pod that lingers on is stale.
    term: Math.floor(clock.now() / 1000),
    session: randomUUID(),
    onToken: telemetry.hide,
    observer: telemetry.publisher,
  });
  closing.defer(() => inventory.close());
  proxies.subscribe((key) => {
    queue.add(key);
    health.refresh(key);
    inventory.notify();
  });
  cloudInitSecrets.subscribe((secret) => {
    for (const key of proxiesOfSecret(secret, proxies.list())) queue.add(key);
  });
  secrets.subscribe(() => inventory.notify());

  const kube = { proxies, writer, secrets, cloudInitSecrets, events };
  const reconcile = createReconcile({ ...kube, providers, verdicts: health, clock });
  const workers = { queue, count: WORKERS, reconcile, clock, observer: telemetry.reconcile };
  const control = async (signal: AbortSignal) => {
    await cluster.whenSynced(signal);
    // In this order: the engine first takes over the verdicts that stand in the status.
    const working = [health.run(signal), runWorkers({ ...workers, signal }), inventory.run(signal)];
    await Promise.all(working);
  };
  const loops = { ...cluster.loops, providers: providers.run, control };
  return { feedback: inventory.feedback, loops };
}

function say(stream: NodeJS.WriteStream, lines: readonly string[], code: number): number {
  for (const line of lines) stream.write(`${line}\n`);
  return code;
}
