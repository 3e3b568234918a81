/**
 * Metrics that are read where the truth is, at each scrape: counting along while reconciling would
 * drift and leave series behind.
 */
import { Counter, Gauge, type Registry } from 'prom-client';
import { METRIC_PREFIX } from './metrics.ts';

export interface CollectedState {
  /** Phase of every cached proxy; undefined before its first reconcile. */
  readonly phases: () => Iterable<string | undefined>;
  /** All phases that there are, so that an empty one shows as 0. */
  readonly allPhases: readonly string[];
  readonly feedback: {
    readonly activeLeasesTotal: number;
    readonly reportsTotal: { readonly rateLimited: number; readonly banned: number };
    readonly leaseRequests: ReadonlyMap<string, number>;
    readonly lastAnswerMs: number | undefined;
  };
  readonly monotonicMs: () => number;
}

/** What a proxy without a phase counts as. */
const PHASE_BEFORE_FIRST = 'Pending';

export function registerCollectors(registry: Registry, state: CollectedState): void {
  const registers = [registry];
  new Gauge({
    name: `${METRIC_PREFIX}proxies`,
    help: 'Proxies by phase.',
    labelNames: ['phase'],
    registers,
    collect() {
      const counts = new Map(state.allPhases.map((phase) => [phase, 0]));
      for (const phase of state.phases()) {
        const counted = phase ?? PHASE_BEFORE_FIRST;
        counts.set(counted, (counts.get(counted) ?? 0) + 1);
      }
      for (const [phase, count] of counts) this.set({ phase }, count);
    },
  });
  new Gauge({
    name: `${METRIC_PREFIX}leases_active`,
    help: 'Leases held at the edge on proxies of this cluster, as of its last answer.',
    registers,
    collect() {
      this.set(state.feedback.activeLeasesTotal);
    },
  });
  new Gauge({
    name: `${METRIC_PREFIX}edge_last_answer_age_seconds`,
    help: 'Time since the edge last accepted a sync; absent before the first.',
    labelNames: [],
    registers,
    collect() {
      const { lastAnswerMs } = state.feedback;
      if (lastAnswerMs === undefined) this.remove();
      else this.set((state.monotonicMs() - lastAnswerMs) / 1000);
    },
  });
  registerEdgeCounters(registry, state);
}

/** Counted by the edge; the values are taken over as they are. */
function registerEdgeCounters(registry: Registry, { feedback }: CollectedState): void {
  new Counter({
    name: `${METRIC_PREFIX}lease_requests_total`,
    help: 'Lease requests at the edge by outcome.',
    labelNames: ['outcome'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [outcome, count] of feedback.leaseRequests) this.inc({ outcome }, count);
    },
  });
  new Counter({
    name: `${METRIC_PREFIX}lease_reports_total`,
    help: 'Reports of crawlers on proxies of this cluster since the agent started.',
    labelNames: ['result'],
    registers: [registry],
    collect() {
      this.reset();
      this.inc({ result: 'rate_limited' }, feedback.reportsTotal.rateLimited);
      this.inc({ result: 'banned' }, feedback.reportsTotal.banned);
    },
  });
}
