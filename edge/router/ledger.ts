/**
 * The ledger as the HTTP handlers see it: one, however many shards it has. Made once; each call
 * takes fresh stubs of the objects.
 */
import { shardOfLease } from '#edge/ledger/shards.ts';
import type {
  LeaseResult,
  LedgerCalls,
  LedgerOp,
  ProxyPage,
  ProxyQuery,
  RenewResult,
  ReportResult,
} from '#edge/object/rpc.ts';
import type { ReportRequest, Stats } from '#shared/wire/lease.ts';
import type { SyncRequest } from '#shared/wire/sync.ts';
import { type Acquired, acquire } from './acquire.ts';
import type { Ask, Caller, RouterDeps } from './attempts.ts';
import { type CallRefusal, callShard, type Outcome } from './calls.ts';
import { clientAt } from './limits.ts';
import { type SyncOutcome, sync } from './sync.ts';
import { mergePages, mergeStats } from './views.ts';

/** `client` is the name of the crawler's token; see `limits.ts`. */
export interface Ledger {
  acquire(ask: Ask, caller: Caller): Promise<Acquired>;
  lease(id: string, client: string): Promise<LeaseResult | CallRefusal>;
  renew(
    id: string,
    ttlSeconds: number | undefined,
    client: string,
  ): Promise<RenewResult | CallRefusal>;
  /** Undefined: it is over, whatever it was. */
  release(id: string): Promise<CallRefusal | undefined>;
  report(id: string, report: ReportRequest, client: string): Promise<ReportResult | CallRefusal>;
  proxies(query: ProxyQuery, client: string): Promise<Outcome<ProxyPage>>;
  stats(client: string): Promise<Outcome<Stats>>;
  sync(cluster: string, request: SyncRequest): Promise<SyncOutcome>;
}

export function createLedger(deps: RouterDeps): Ledger {
  const { shards, limits } = deps;

  /** Asks the shard that the lease's id names; undefined when it is no id of ours. */
  async function atShardOf<Op extends 'lease' | 'renew' | 'report'>(
    id: string,
    op: Op,
    args: LedgerCalls[Op]['args'],
    name: string,
  ): Promise<LedgerCalls[Op]['result'] | CallRefusal | typeof UNKNOWN> {
    const shard = shardOfLease(id);
    if (shard === undefined) return UNKNOWN;
    const client = clientAt(limits, name, shard, shards);
    const outcome = await callShard(deps, shard, op, args, { client });
    return outcome.ok ? outcome.value : outcome;
  }

  /** Asks every shard; the first refusal stands for all, since a part is not the whole. */
  async function everywhere<Op extends LedgerOp>(
    op: Op,
    args: LedgerCalls[Op]['args'],
    name: string,
  ): Promise<Outcome<LedgerCalls[Op]['result'][]>> {
    const outcomes = await Promise.all(
      Array.from({ length: shards }, (_, shard) =>
        callShard(deps, shard, op, args, { client: clientAt(limits, name, shard, shards) }),
      ),
    );
    const values: LedgerCalls[Op]['result'][] = [];
    for (const outcome of outcomes) {
      if (!outcome.ok) return outcome;
      values.push(outcome.value);
    }
    return { ok: true, value: values };
  }

  return {
    acquire: (ask, caller) => acquire(deps, ask, caller),
    lease: (id, client) => atShardOf(id, 'lease', { id }, client),
    renew: (id, ttlSeconds, client) => atShardOf(id, 'renew', { id, ttlSeconds }, client),
    report: (id, report, client) => atShardOf(id, 'report', { id, report }, client),
    async release(id) {
      const shard = shardOfLease(id);
      if (shard === undefined) return undefined;
      // Without a client: giving back is never too much.
      const outcome = await callShard(deps, shard, 'release', { id });
      return outcome.ok ? undefined : outcome;
    },
    async proxies(query, client) {
      const pages = await everywhere('proxies', query, client);
      return pages.ok ? { ok: true, value: mergePages(pages.value, query.limit) } : pages;
    },
    async stats(client) {
      const stats = await everywhere('stats', undefined, client);
      return stats.ok ? { ok: true, value: mergeStats(stats.value) } : stats;
    },
    sync: (cluster, request) => sync(deps, cluster, request),
  };
}

const UNKNOWN = { ok: false, code: 'unknown_lease' } as const;
