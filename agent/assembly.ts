/**
 * How the parts of the agent are joined: what runs in every replica (caches, the providers file)
 * and what acts, which only the leader does. Notices between the parts carry keys; whoever gets
 * one looks at what is true then.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { systemClock as clock } from '#shared/clock.ts';
import { objectKey } from '#shared/crd/object-meta.ts';
import type { Config } from './config.ts';
import { proxiesOfSecret } from './controller/cloud-init.ts';
import { credentialsOf } from './controller/credentials.ts';
import { createReconcile } from './controller/reconcile.ts';
import { createLiveProxies } from './gc/live-proxies.ts';
import { createSweeper } from './gc/sweeper.ts';
import { createHealthEngine } from './health/engine.ts';
import { createProbe } from './health/probe.ts';
import { probeTarget } from './health/targets.ts';
import { createFeedback } from './inventory/feedback.ts';
import { openInventory } from './inventory/inventory.ts';
import type { Cluster } from './kube/cluster.ts';
import { retryWithinMs } from './kube/errors.ts';
import { readInstallation } from './kube/installation.ts';
import { createLeaseStore } from './kube/lease-store.ts';
import { openProviderFile, type ProviderFile } from './provider-file.ts';
import { createHealthMonitor } from './provider-health/monitor.ts';
import { createHealthWriter } from './provider-health/writer.ts';
import { guard } from './providers/guard.ts';
import type { ProviderBuilders } from './providers/registry.ts';
import { runElection } from './runtime/leader-election.ts';
import { type Leadership, soleLeadership } from './runtime/leadership.ts';
import type { Loop } from './runtime/supervise.ts';
import { createWorkQueue } from './runtime/work-queue.ts';
import { runWorkers } from './runtime/workers.ts';
import type { Telemetry } from './telemetry/telemetry.ts';

export interface Parts {
  readonly config: Config;
  readonly telemetry: Telemetry;
  readonly cluster: Cluster;
  /** How each type of provider is made. */
  readonly builders: ProviderBuilders;
}

const WORKERS = 3;
const random = () => randomInt(2 ** 32) / 2 ** 32;
export const time = { clock, random };

/** The loops of the agent, by name; each runs until its signal aborts. */
export function assemble(parts: Parts): Readonly<Record<string, Loop>> {
  const { config, telemetry, cluster } = parts;
  const reloads = new Set<() => void>();
  const providers = openProviderFile({
    ...time,
    file: config.providers,
    builders: parts.builders,
    requests: telemetry.provider,
    onReload: () => {
      for (const listener of reloads) listener();
    },
    observer: telemetry.providerFile,
  });
  const feedback = createFeedback();
  telemetry.collect({ proxies: cluster.proxies, feedback, clock });
  const control = async (signal: AbortSignal) => {
    await cluster.whenSynced(signal);
    const installation = await readInstallation(
      {
        ...time,
        client: cluster.client,
        namespace: config.homeNamespace,
        newId: randomUUID,
        onWait: telemetry.waiting,
      },
      signal,
    );
    const lead = (leadership: Leadership) =>
      act({ ...parts, providers, reloads, feedback, installation, leadership });
    if (!config.leaderElect) {
      const leadership = soleLeadership(clock, signal);
      telemetry.election.becameLeader(leadership.term);
      return lead(leadership);
    }
    await runElection({
      ...time,
      store: createLeaseStore({ client: cluster.client, namespace: config.homeNamespace }),
      // A process that is started again under the same name is another candidate.
      identity: `${config.instance}_${randomUUID()}`,
      timing: config.election,
      observer: telemetry.election,
      signal,
      lead,
    });
  };
  return { ...cluster.loops, providers: providers.run, control };
}

interface ActingParts extends Parts {
  readonly providers: ProviderFile;
  /** Called after a change of the providers file. */
  readonly reloads: Set<() => void>;
  readonly feedback: ReturnType<typeof createFeedback>;
  readonly installation: string;
  readonly leadership: Leadership;
}

/** All that changes anything, until leadership ends. */
async function act(parts: ActingParts): Promise<void> {
  const { config, telemetry, cluster, feedback, installation, leadership } = parts;
  const { proxies, cloudInitSecrets, secrets, events, writer } = cluster;
  const { signal, term } = leadership;
  await using closing = new AsyncDisposableStack();
  const credentials = (namespace: string, name: string) =>
    credentialsOf(secrets.peek(namespace, name));
  const queue = createWorkQueue({ ...time, observer: telemetry.queue });
  closing.defer(() => queue.close());
  const echoUrl = `${config.edgeUrl}/v1/echo`;
  const target = (proxy: ReturnType<typeof proxies.get>) =>
    proxy && probeTarget(proxy, { echoUrl, credentials });
  const health = createHealthEngine({
    ...time,
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
  });
  const inventory = openInventory({
    ...config,
    ...time,
    proxies,
    credentials,
    verdict: (key) => health.verdict(key),
    feedback,
    term,
    session: randomUUID(),
    onToken: telemetry.hide,
    observer: telemetry.publisher,
  });
  closing.defer(() => inventory.close());
  const addAll = () => {
    for (const proxy of proxies.list()) queue.add(objectKey(proxy.metadata));
  };
  // Whoever leads from now on has not been told what changed before.
  addAll();
  closing.defer(
    proxies.subscribe((key, origin) => {
      // What the controller wrote itself tells it nothing, and would undo its backoff.
      if (origin === 'server') queue.add(key);
      health.refresh(key);
      inventory.notify();
    }),
  );
  closing.defer(
    cloudInitSecrets.subscribe((secret) => {
      for (const key of proxiesOfSecret(secret, proxies.list())) queue.add(key);
    }),
  );
  closing.defer(secrets.subscribe(() => inventory.notify()));

  const reconcile = createReconcile({
    proxies,
    writer,
    secrets,
    cloudInitSecrets,
    events,
    providers: {
      get(name) {
        const provider = parts.providers.get(name);
        return provider && guard(provider, leadership);
      },
    },
    verdicts: health,
    leases: inventory,
    observer: telemetry.controller,
    installation,
    clock,
  });
  const sweeper = createSweeper(
    {
      ...time,
      providers: { list: () => parts.providers.list().map((each) => guard(each, leadership)) },
      proxies,
      cacheProblems: cluster.problems,
      listLive: createLiveProxies(cluster.client, cluster.namespace),
      events,
      observer: telemetry.gc,
    },
    {
      installation,
      ...(cluster.namespace === undefined ? {} : { namespace: cluster.namespace }),
      intervalMs: config.gcIntervalMs,
      minAgeMs: config.gcMinAgeMs,
      allowNamespaced: config.gcAllowNamespaced,
    },
  );
  const observer = telemetry.reconcile;
  const workers = { queue, count: WORKERS, reconcile, clock, retryWithinMs, observer };
  const monitor = createHealthMonitor(
    {
      ...time,
      providers: parts.providers,
      writer: createHealthWriter({ client: cluster.client, installation, leadership }),
      observer: telemetry.providerHealth,
    },
    { intervalMs: config.providerCheckIntervalMs, timeoutMs: config.providerCheckTimeoutMs },
  );
  const onReload = () => {
    addAll();
    monitor.refresh();
  };
  parts.reloads.add(onReload);
  closing.defer(() => void parts.reloads.delete(onReload));
  // In this order: the engine first takes over the verdicts that stand in the status.
  await Promise.all([
    health.run(signal),
    runWorkers({ ...workers, signal }),
    inventory.run(signal),
    sweeper.run(signal),
    monitor.run(signal),
  ]);
}
