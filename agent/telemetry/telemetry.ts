/** Log, metrics and the observers over both, made together; the face of this folder. */
import { Registry } from 'prom-client';
import { type CollectedState, registerCollectors } from './collectors.ts';
import { controllerObserver } from './controller-observers.ts';
import { electionObserver } from './election-observers.ts';
import { gcObserver } from './gc-observers.ts';
import { createLog, type Log, type LogOptions } from './log.ts';
import { createMetrics } from './metrics.ts';
import * as observers from './observers.ts';
import { providerHealthObserver } from './provider-health-observers.ts';
import { createScrubber, type Scrubber } from './scrub.ts';

export type Telemetry = Awaited<ReturnType<typeof createTelemetry>>;

export async function createTelemetry(options: Pick<LogOptions, 'level' | 'format'>) {
  const scrubber: Scrubber = createScrubber();
  const log: Log = await createLog({ ...options, scrubber });
  const registry = new Registry();
  const metrics = createMetrics(registry);
  return {
    log,
    registry,
    /** Keeps a value out of every later log line. */
    hide: scrubber.hide,
    /** Adds the metrics that are read at each scrape. */
    collect: (state: CollectedState) => registerCollectors(registry, state),
    queue: observers.queueObserver(metrics),
    reconcile: observers.reconcileObserver(log, metrics),
    provider: observers.providerObserver(log, metrics),
    probe: observers.probeObserver(log, metrics),
    cluster: {
      ...observers.informerObserver(log, metrics),
      ...observers.eventObserver(log, metrics),
    },
    publisher: observers.publisherObserver(log, metrics),
    controller: controllerObserver(log, registry),
    election: electionObserver(log, registry),
    gc: gcObserver(log, registry),
    providerHealth: providerHealthObserver(log, registry),
    waiting: observers.waitingForCluster(log),
    providerFile: observers.providerFileObserver(log),
  };
}
