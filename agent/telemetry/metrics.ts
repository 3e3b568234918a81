/**
 * Every metric of the agent, on a registry that is handed in. Names are those of the reference
 * architecture with the prefix `proxy_operator_`; labels are bounded by what is configured or
 * declared, never by what crawlers do.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, type Registry } from 'prom-client';

export const METRIC_PREFIX = 'proxy_operator_';

/** Seconds; from a cache hit to a call that runs into its deadline. */
const CALL_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Seconds; fewer, since there is one histogram for each proxy. */
const PROBE_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics(registry: Registry) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter({ name: METRIC_PREFIX + name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Gauge({ name: METRIC_PREFIX + name, help, labelNames, registers });
  const histogram = <L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets: number[],
  ) => new Histogram({ name: METRIC_PREFIX + name, help, labelNames, buckets, registers });

  collectDefaultMetrics({ register: registry, prefix: METRIC_PREFIX });
  return {
    probeDuration: histogram(
      'healthcheck_duration_seconds',
      'Time of each probe through a proxy.',
      ['proxy'],
      PROBE_BUCKETS,
    ),
    probeFailures: counter('healthcheck_failures_total', 'Failed probes.', ['proxy']),
    providerRequests: counter('provider_requests_total', 'Requests to providers.', [
      'provider',
      'op',
      'result',
    ]),
    providerDuration: histogram(
      'provider_request_duration_seconds',
      'Time of each request to a provider.',
      ['provider', 'op'],
      CALL_BUCKETS,
    ),
    queueDepth: gauge('workqueue_depth', 'Proxies that wait for a reconcile.'),
    queueAdds: counter('workqueue_adds_total', 'Proxies put into the work queue.'),
    queueRetries: counter('workqueue_retries_total', 'Proxies put back after a failure.'),
    queueWait: histogram(
      'workqueue_queue_duration_seconds',
      'Time that a proxy waits in the work queue.',
      [],
      CALL_BUCKETS,
    ),
    queueWork: histogram(
      'workqueue_work_duration_seconds',
      'Time that a worker holds a proxy.',
      [],
      CALL_BUCKETS,
    ),
    reconciles: counter('reconcile_total', 'Reconciles by result.', ['result']),
    reconcileDuration: histogram(
      'reconcile_duration_seconds',
      'Time of each reconcile.',
      ['result'],
      CALL_BUCKETS,
    ),
    informerLists: counter('informer_lists_total', 'Full lists of a resource.', ['resource']),
    informerFailures: counter('informer_failures_total', 'Failed lists and watches.', ['resource']),
    syncs: counter('sync_requests_total', 'Syncs with the edge.', ['kind', 'outcome']),
    syncDuration: histogram(
      'sync_duration_seconds',
      'Time of each sync with the edge.',
      ['kind'],
      CALL_BUCKETS,
    ),
    syncBytes: counter('sync_bytes_total', 'Bytes of syncs before compression.', ['kind']),
    edgeUp: gauge('edge_up', '1 while the edge accepts what the agent sends.'),
    eventsDropped: counter('events_dropped_total', 'Kubernetes Events given up.', ['reason']),
  };
}
