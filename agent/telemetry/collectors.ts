/**
 * Metrics that are read where the truth is, at each scrape: counting along while reconciling would
 * drift and leave series behind.
 */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { FeedbackReader } from '#agent/inventory/feedback.ts';
import type { Clock } from '#shared/clock.ts';
import type { Proxy, ProxyPhase } from '#shared/crd/proxy.ts';
import { PROXY_PHASES } from '#shared/crd/proxy.ts';
import { METRIC_PREFIX } from './metrics.ts';

export interface CollectedState {
  readonly proxies: { list(): Iterable<Proxy> };
  readonly feedback: FeedbackReader;
  readonly clock: Clock;
}

/** What a proxy counts as before its first reconcile. */
const PHASE_BEFORE_FIRST: ProxyPhase = 'Pending';

export function registerCollectors(registry: Registry, state: CollectedState): void {
  const registers = [registry];
  new Gauge({
    name: `${METRIC_PREFIX}proxies`,
    help: 'Proxies by phase.',
    labelNames: ['phase'],
    registers,
    collect() {
      // Every phase is there, so that an empty one shows as 0.
      const counts = new Map<ProxyPhase, number>(PROXY_PHASES.map((phase) => [phase, 0]));
      for (const { status } of state.proxies.list()) {
        const phase = status.phase ?? PHASE_BEFORE_FIRST;
        counts.set(phase, (counts.get(phase) ?? 0) + 1);
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
      else this.set((state.clock.monotonicMs() - lastAnswerMs) / 1000);
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
