/** What the edge's answers say of leases and reports, which nobody in the cluster can know. */
import type { SyncResponse } from '#shared/wire/sync.ts';

export interface ReportCounts {
  readonly rateLimited: number;
  readonly banned: number;
}

export interface FeedbackReader {
  /** Leases that are held on the proxy, as of the last answer that told; 0 when none was named. */
  activeLeases(uid: string): number;
  /** Sum over all proxies. */
  readonly activeLeasesTotal: number;
  /** Reports on the proxy since this process began to listen. */
  reports(uid: string): ReportCounts;
  /** Reports on all proxies since this process began to listen, those of removed ones included. */
  readonly reportsTotal: ReportCounts;
  /** Outcomes of lease requests since the edge began to count. */
  readonly leaseRequests: ReadonlyMap<string, number>;
  /** Monotonic time of the last answer; undefined before the first. */
  readonly lastAnswerMs: number | undefined;
}

export interface Feedback extends FeedbackReader {
  apply(response: SyncResponse, nowMs: number): void;
  /** Forgets the figures of proxies that no longer exist. */
  retain(has: (uid: string) => boolean): void;
}

const NO_REPORTS: ReportCounts = { rateLimited: 0, banned: 0 };

export function createFeedback(): Feedback {
  let leases = new Map<string, number>();
  let leaseRequests = new Map<string, number>();
  let lastAnswerMs: number | undefined;
  let reportsTotal = NO_REPORTS;
  const reports = new Map<string, ReportCounts>();

  return {
    activeLeases: (uid) => leases.get(uid) ?? 0,
    get activeLeasesTotal() {
      return [...leases.values()].reduce((sum, count) => sum + count, 0);
    },
    reports: (uid) => reports.get(uid) ?? NO_REPORTS,
    get reportsTotal() {
      return reportsTotal;
    },
    get leaseRequests() {
      return leaseRequests;
    },
    get lastAnswerMs() {
      return lastAnswerMs;
    },
    apply(response, nowMs) {
      const named = Object.entries(response.leases);
      // What a partial answer does not name is as it was; counters it has none.
      leases = new Map(response.partial ? [...leases, ...named] : named);
      if (!response.partial) leaseRequests = new Map(Object.entries(response.counters));
      lastAnswerMs = nowMs;
      for (const [uid, counts] of Object.entries(response.reports)) {
        const delta = { rateLimited: counts.rate_limited, banned: counts.banned };
        reports.set(uid, add(reports.get(uid) ?? NO_REPORTS, delta));
        reportsTotal = add(reportsTotal, delta);
      }
    },
    retain(has) {
      for (const uid of reports.keys()) if (!has(uid)) reports.delete(uid);
      for (const uid of leases.keys()) if (!has(uid)) leases.delete(uid);
    },
  };
}

function add(a: ReportCounts, b: ReportCounts): ReportCounts {
  return { rateLimited: a.rateLimited + b.rateLimited, banned: a.banned + b.banned };
}
