/**
 * What crawlers reported, for the agents to count: per proxy, since the last answer. Figures for
 * dashboards: they live in memory only and start again at zero with the object, as counters do.
 */
import type { SyncResponse } from '#shared/wire/sync.ts';

/** Targets that are named per proxy and answer. */
const TARGETS_MAX = 20;

type Reports = SyncResponse['reports'];
type ProxyReports = Reports[string];

interface ClusterReports {
  readonly pending: Map<string, ProxyReports>;
  /** What the last answer carried: a repetition of its request gets it again. */
  answered: { readonly to: string; readonly reports: Reports };
}

export class Feedback {
  readonly #clusters = new Map<string, ClusterReports>();

  /** Notes an offence of a proxy; an empty target stands for all of them and is not named. */
  note(cluster: string, uid: string, result: 'rate_limited' | 'banned', target: string): void {
    const { pending } = this.#of(cluster);
    const reports = pending.get(uid) ?? { rate_limited: 0, banned: 0, targets: [] };
    pending.set(uid, reports);
    reports[result]++;
    const isNew = target !== '' && !reports.targets.includes(target);
    if (isNew && reports.targets.length < TARGETS_MAX) reports.targets.push(target);
  }

  /** The reports that go with the answer to a request, which `to` identifies. */
  take(cluster: string, to: string): Reports {
    const reports = this.#of(cluster);
    if (reports.answered.to !== to) {
      reports.answered = { to, reports: Object.fromEntries(reports.pending) };
      reports.pending.clear();
    }
    return reports.answered.reports;
  }

  #of(cluster: string): ClusterReports {
    let reports = this.#clusters.get(cluster);
    if (reports === undefined) {
      reports = { pending: new Map(), answered: { to: '', reports: {} } };
      this.#clusters.set(cluster, reports);
    }
    return reports;
  }
}
