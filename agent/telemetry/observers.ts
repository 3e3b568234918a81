/**
 * The observer interfaces of the other folders, as log lines and metrics. A failure is logged where
 * it is handled and nowhere else, so this is where the agent's log is worded.
 */
import type { ProbeObserver } from '#agent/health/engine.ts';
import type { PublisherObserver } from '#agent/inventory/publisher.ts';
import type { EventObserver } from '#agent/kube/events.ts';
import type { InformerObserver } from '#agent/kube/informer.ts';
import type { ProviderFileObserver } from '#agent/provider-file.ts';
import type { ProviderObserver } from '#agent/providers/instrumentation.ts';
import type { QueueObserver } from '#agent/runtime/work-queue.ts';
import type { ReconcileObserver } from '#agent/runtime/workers.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';

const FAILURES_WORTH_TELLING = 2;

const seconds = (ms: number) => ms / 1000;

export function queueObserver(metrics: Metrics): QueueObserver {
  return {
    added: () => metrics.queueAdds.inc(),
    retried: () => metrics.queueRetries.inc(),
    depth: (count) => metrics.queueDepth.set(count),
    queued: (durationMs) => metrics.queueWait.observe(seconds(durationMs)),
    worked: (durationMs) => metrics.queueWork.observe(seconds(durationMs)),
  };
}

export function reconcileObserver(log: Log, metrics: Metrics): ReconcileObserver {
  return {
    reconciled(key, result, durationMs, error) {
      metrics.reconciles.inc({ result });
      metrics.reconcileDuration.observe({ result }, seconds(durationMs));
      if (result === 'error')
        log.warn({ proxy: key, err: error }, 'reconcile failed, trying again');
      else log.debug({ proxy: key, result, durationMs }, 'reconciled');
    },
  };
}

export function providerObserver(log: Log, metrics: Metrics): ProviderObserver {
  return {
    providerRequest({ provider, op, result, durationMs }) {
      metrics.providerRequests.inc({ provider, op, result });
      metrics.providerDuration.observe({ provider, op }, seconds(durationMs));
      log.debug({ provider, op, result, durationMs }, 'provider request');
    },
  };
}

export function probeObserver(log: Log, metrics: Metrics): ProbeObserver {
  return {
    probed(key, result, durationMs) {
      metrics.probeDuration.observe({ proxy: key }, seconds(durationMs));
      // Made to exist with the first probe, so that a rate over it sees the first failure.
      metrics.probeFailures.inc({ proxy: key }, result.ok ? 0 : 1);
      if (result.ok) return;
      log.debug({ proxy: key, reason: result.reason, detail: result.message }, 'probe failed');
    },
    forgotten(key) {
      metrics.probeDuration.remove({ proxy: key });
      metrics.probeFailures.remove({ proxy: key });
    },
  };
}

export function informerObserver(log: Log, metrics: Metrics): InformerObserver {
  return {
    listed(resource, objects) {
      metrics.informerLists.inc({ resource });
      log.info({ resource, objects }, 'listed');
    },
    failed(resource, error, failures) {
      metrics.informerFailures.inc({ resource });
      const fields = { resource, err: error, failures };
      // A watch that breaks once is daily life; a server that stays away is told once.
      if (failures === FAILURES_WORTH_TELLING) log.warn(fields, 'cannot list or watch, trying on');
      else log.debug(fields, 'list or watch ended, trying again');
    },
    recovered(resource, failures) {
      if (failures >= FAILURES_WORTH_TELLING) log.info({ resource, failures }, 'following again');
    },
    unparsable: (resource, object, error) =>
      log.error({ resource, object, err: error }, 'object does not match its schema, ignored'),
    listenerFailed: (resource, error) =>
      log.error({ resource, err: error }, 'bug: a listener of the cache threw'),
  };
}

export function publisherObserver(log: Log, metrics: Metrics): PublisherObserver {
  return {
    synced(kind, outcome, bytes, durationMs) {
      metrics.syncs.inc({ kind, outcome });
      metrics.syncDuration.observe({ kind }, seconds(durationMs));
      metrics.syncBytes.inc({ kind }, bytes);
      metrics.edgeUp.set(outcome === 'accepted' ? 1 : 0);
      if (kind === 'full' && outcome === 'accepted') log.info({ bytes }, 'inventory sent in full');
      else log.debug({ kind, outcome, bytes, durationMs }, 'sync');
    },
    edgeAway: (reason) =>
      log.warn({ reason }, 'the edge is away; proxies are kept up, it is told when it is back'),
    edgeBack: (awayMs) =>
      log.info({ awaySeconds: Math.round(seconds(awayMs)) }, 'the edge is back'),
    refused: (reason) => log.error({ reason }, 'the edge refuses this agent'),
    staleTerm: (term) =>
      log.error({ term }, 'another agent speaks for this cluster; not publishing while it does'),
  };
}

export function providerFileObserver(log: Log): ProviderFileObserver {
  return {
    reloaded: (names) => log.info({ providers: names }, 'providers file reloaded'),
    refused: (problems) =>
      log.error({ problems }, 'changed providers file is faulty; the former one stays in force'),
    unreadable: (error) =>
      log.error({ err: error }, 'providers file cannot be read; the former one stays in force'),
  };
}

export function waitingForCluster(log: Log) {
  return (error: Error) => log.warn({ err: error }, 'waiting for the API server');
}

export function eventObserver(log: Log, metrics: Metrics): EventObserver {
  return {
    eventDropped(reason, error) {
      metrics.eventsDropped.inc({ reason });
      log.debug({ reason, err: error }, 'Kubernetes Event given up');
    },
  };
}
