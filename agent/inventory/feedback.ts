/** What the edge's answers say of leases and reports, which nobody in the cluster can know. */
import type { SyncResponse } from '#shared/wire/sync.ts';

export interface ReportCounts {
  readonly rateLimited: number;
  readonly banned: number;
}

export interface FeedbackReader {
  /** Leases that are held on the proxy now, as of the last answer; 0 when the edge named none. */
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
  /** Forgets the reports of proxies that no longer exist. */
  retain(has: (uid: string) => boolean): void;
}

const NO_REPORTS: ReportCounts = { rateLimited: 0, banned: 0 };

export function createFeedback(): Feedback {
  let leases = new Map<string, number>();
  let leasesTotal = 0;
  let leaseRequests = new Map<string, number>();
  let lastAnswerMs: number | undefined;
  let reportsTotal = NO_REPORTS;
  const reports = new Map<string, ReportCounts>();

  return {
    activeLeases: (uid) => leases.get(uid) ?? 0,
    get activeLeasesTotal() {
      return leasesTotal;
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
      leases = new Map(Object.entries(response.leases));
      leasesTotal = [...leases.values()].reduce((sum, count) => sum + count, 0);
      leaseRequests = new Map(Object.entries(response.counters));
      lastAnswerMs = nowMs;
      for (const [uid, counts] of Object.entries(response.reports)) {
        const delta = { rateLimited: counts.rate_limited, banned: counts.banned };
        reports.set(uid, add(reports.get(uid) ?? NO_REPORTS, delta));
        reportsTotal = add(reportsTotal, delta);
      }
    },
    retain(has) {
      for (const uid of reports.keys()) if (!has(uid)) reports.delete(uid);
    },
  };
}

function add(a: ReportCounts, b: ReportCounts): ReportCounts {
  return { rateLimited: a.rateLimited + b.rateLimited, banned: a.banned + b.banned };
}
