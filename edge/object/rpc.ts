/**
 * What the Worker may ask of the ledger. Expected refusals travel as tagged results, because
 * properties of a thrown error do not survive the way between Worker and object.
 */
import type {
  AcquireResult,
  LeaseResult,
  RenewResult,
  ReportResult,
  SyncResult,
} from '#edge/ledger/book.ts';
import type { Position, ProxyPage, ProxyQuery } from '#edge/ledger/listing.ts';
import type { AcquireRequest, ReportRequest, Stats } from '#shared/wire/lease.ts';
import type { SyncRequest } from '#shared/wire/sync.ts';

export interface LedgerRpc {
  /** Targets in requests are normalised already. */
  acquire(request: AcquireRequest): Promise<AcquireResult>;
  lease(id: string): Promise<LeaseResult>;
  renew(id: string, ttlSeconds: number | undefined): Promise<RenewResult>;
  release(id: string): Promise<void>;
  report(id: string, report: ReportRequest): Promise<ReportResult>;
  sync(cluster: string, request: SyncRequest): Promise<SyncResult>;
  proxies(query: ProxyQuery): Promise<ProxyPage>;
  stats(): Promise<Stats>;
}

export type {
  AcquireResult,
  LeaseResult,
  Position,
  ProxyPage,
  ProxyQuery,
  RenewResult,
  ReportResult,
  SyncResult,
};
