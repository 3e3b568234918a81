/**
 * The book: inventory, leases and cooldowns in one place, with the rules that join them. Pure: it
 * has no clock, no randomness and no storage. A mutation changes the book and returns the rows
 * that make the change durable; whoever cannot write them must throw the book away and build it
 * again from storage. A book built from the rows answers as the one that yielded them.
 */
import type { NoMatch } from '#shared/wire/errors.ts';
import type {
  AcquireRequest,
  Lease as LeaseView,
  ReportRequest,
  Stats,
} from '#shared/wire/lease.ts';
import type { SyncRequest, SyncResponse } from '#shared/wire/sync.ts';
import { Cooldowns } from './cooldowns.ts';
import { EVERY_TARGET, egressesOf, egressOf } from './egress.ts';
import { Feedback } from './feedback.ts';
import { Inventory } from './inventory.ts';
import { Leases } from './leases.ts';
import { countStats, listProxies, type ProxyPage, type ProxyQuery } from './listing.ts';
import type { Change, Lease, LeaseRow, Mutation, ProxyRecord, Snapshot } from './model.ts';
import type { Rules } from './rules.ts';
import { select } from './selection.ts';
import { type SyncRefusal, Syncs } from './sync.ts';
import { leaseView } from './views.ts';

/** Tokens are reserved in storage by the block, so that a grant writes its lease's row alone. */
const TOKEN_BLOCK = 1_000;

export type LeaseRefusal = {
  readonly ok: false;
  readonly code: 'unknown_lease' | 'lease_expired' | 'proxy_gone';
};
export type TtlRefusal = {
  readonly ok: false;
  readonly code: 'ttl_too_long';
  readonly maxTtlSeconds: number;
};
export type Overload = { readonly ok: false; readonly code: 'overloaded'; readonly reason: string };

export type AcquireResult =
  | { readonly ok: true; readonly lease: LeaseView }
  | {
      readonly ok: false;
      readonly code: 'no_match';
      readonly noMatch: NoMatch;
      readonly withheld: number;
    }
  | TtlRefusal
  | Overload;
export type LeaseResult = { readonly ok: true; readonly lease: LeaseView } | LeaseRefusal;
export type RenewResult = LeaseResult | TtlRefusal;
export type ReportResult = { readonly ok: true } | LeaseRefusal | Overload;
export type SyncResult =
  | { readonly ok: true; readonly response: SyncResponse }
  | ({ readonly ok: false } & SyncRefusal);

export class Book {
  readonly #rules: Rules;
  readonly #inventory: Inventory;
  readonly #leases: Leases;
  readonly #cooldowns: Cooldowns;
  readonly #syncs: Syncs;
  readonly #feedback = new Feedback();
  #lastToken: number;
  #tokenCeiling: number;

  constructor(rules: Rules, snapshot: Snapshot) {
    this.#rules = rules;
    this.#inventory = new Inventory(snapshot);
    this.#leases = new Leases(rules);
    this.#cooldowns = new Cooldowns(rules, snapshot.cooldowns);
    this.#syncs = new Syncs(rules, this.#inventory);
    this.#lastToken = snapshot.tokenCeiling;
    this.#tokenCeiling = snapshot.tokenCeiling;
    for (const row of snapshot.leases) {
      const proxy = row.gone ? undefined : this.#machineOf(row);
      this.#leases.add(row, proxy);
      if (proxy !== undefined) proxy.usedToken = Math.max(proxy.usedToken, row.token);
    }
  }

  /** Grants a lease under the id `leaseID`, which nobody must be able to guess. */
  acquire(request: AcquireRequest, leaseID: string, nowMs: number): Mutation<AcquireResult> {
    this.#leases.advance(nowMs);
    const outcome = this.#acquire(request, leaseID, nowMs);
    this.#feedback.count(outcome.result.ok ? 'granted' : outcome.result.code);
    return outcome;
  }

  /** The lease, if it is live. */
  lease(id: string, nowMs: number): LeaseResult {
    this.#leases.advance(nowMs);
    const lease = this.#leases.find(id);
    const proxy = lease && this.#leases.holderOf(lease);
    if (lease === undefined || proxy === undefined) return refusalOf(lease);
    return { ok: true, lease: leaseView(lease, proxy, nowMs) };
  }

  /** Gives a live lease `ttlSeconds` from now, be that later or earlier than it was. */
  renew(id: string, ttlSeconds: number | undefined, nowMs: number): Mutation<RenewResult> {
    this.#leases.advance(nowMs);
    const seconds = ttlSeconds ?? this.#rules.defaultTtlSeconds;
    if (seconds > this.#rules.maxTtlSeconds) return unchanged(this.#ttlTooLong());
    const lease = this.#leases.find(id);
    const proxy = lease && this.#leases.holderOf(lease);
    if (lease === undefined || proxy === undefined) return unchanged(refusalOf(lease));
    const changes = [this.#leases.renew(lease, seconds, nowMs)];
    return { result: { ok: true, lease: leaseView(lease, proxy, nowMs) }, changes };
  }

  /** Ends and forgets the lease; one that is not known has ended already. */
  release(id: string, nowMs: number): Mutation<void> {
    this.#leases.advance(nowMs);
    const lease = this.#leases.find(id);
    return { result: undefined, changes: lease === undefined ? [] : [this.#leases.release(lease)] };
  }

  /** Takes what a crawler saw through its lease, also for a while after the lease has ended. */
  report(id: string, report: ReportRequest, nowMs: number): Mutation<ReportResult> {
    this.#leases.advance(nowMs);
    const lease = this.#leases.find(id);
    if (lease === undefined) return unchanged(refusalOf(lease));
    const { cluster, uid, grantedMs } = lease.row;
    const proxy = this.#machineOf(lease.row);
    const target = report.target ?? lease.row.target ?? EVERY_TARGET;
    if (report.result === 'ok') {
      const egresses = proxy ? egressesOf(cluster, proxy.entry) : [lease.row.egress];
      const changes = this.#cooldowns.forgive(egresses, target, grantedMs);
      return { result: { ok: true }, changes };
    }
    const egress = proxy ? egressOf(cluster, proxy.entry) : lease.row.egress;
    const lengthMs =
      report.result === 'rate_limited' && report.retryAfterSeconds !== undefined
        ? report.retryAfterSeconds * 1000
        : undefined;
    const changes = this.#cooldowns.offend({ egress, target, grantedMs, lengthMs }, nowMs);
    if (changes === undefined) return unchanged(overload('too many cooldowns'));
    if (proxy !== undefined) this.#feedback.note(cluster, uid, report.result, target);
    return { result: { ok: true }, changes };
  }

  /** Takes what the agent of a cluster pushes. */
  sync(cluster: string, request: SyncRequest, nowMs: number): Mutation<SyncResult> {
    this.#leases.advance(nowMs);
    const outcome = this.#syncs.apply(cluster, request, nowMs);
    if (!outcome.ok) {
      const { changes, ...result } = outcome;
      return { result, changes };
    }
    const { update, acceptedSeq } = outcome;
    const ended = (update?.bereaved ?? []).map(({ lease, egress }) =>
      this.#leases.endWithProxy(lease, egress),
    );
    const response = this.#syncResponse(cluster, request.session, acceptedSeq, nowMs);
    return { result: { ok: true, response }, changes: [...(update?.changes ?? []), ...ended] };
  }

  proxies(query: ProxyQuery, nowMs: number): ProxyPage {
    this.#leases.advance(nowMs);
    return listProxies(this.#inventory, query, this.#rules, nowMs);
  }

  stats(nowMs: number): Stats {
    this.#leases.advance(nowMs);
    return {
      ...countStats(this.#inventory, this.#rules, nowMs),
      leases: { active: this.#leases.active },
      cooldowns: this.#cooldowns.active(nowMs),
    };
  }

  /** Deletes up to `rowsMax` rows that say nothing any more. No answer depends on it. */
  sweep(nowMs: number, rowsMax: number): Mutation<void> {
    this.#leases.advance(nowMs);
    const leases = this.#leases.sweep(rowsMax);
    const cooldowns = this.#cooldowns.sweep(nowMs, rowsMax - leases.length);
    return { result: undefined, changes: [...leases, ...cooldowns] };
  }

  /** When a sweep will find something to delete; undefined while nothing is remembered. */
  get nextSweepMs(): number | undefined {
    const next = Math.min(
      this.#leases.nextSweepMs ?? Number.POSITIVE_INFINITY,
      this.#cooldowns.nextSweepMs ?? Number.POSITIVE_INFINITY,
    );
    return next === Number.POSITIVE_INFINITY ? undefined : next;
  }

  #acquire(request: AcquireRequest, leaseID: string, nowMs: number): Mutation<AcquireResult> {
    const ttlSeconds = request.ttlSeconds ?? this.#rules.defaultTtlSeconds;
    if (ttlSeconds > this.#rules.maxTtlSeconds) return unchanged(this.#ttlTooLong());
    if (this.#leases.isFull) return unchanged(overload('too many leases'));
    const strategy = request.strategy ?? 'least-loaded';
    const target = request.target ?? null;
    const wish = { selector: request.selector ?? {}, target, strategy };
    const selection = select(this.#inventory.all(), wish, this.#cooldowns, this.#rules, nowMs);
    const { proxy } = selection;
    if (proxy === undefined) {
      const { noMatch, withheld } = selection;
      return unchanged({ ok: false, code: 'no_match', noMatch, withheld });
    }
    const { token, changes } = this.#nextToken();
    const row: LeaseRow = {
      id: leaseID,
      token,
      cluster: proxy.cluster.name,
      uid: proxy.entry.uid,
      instance: proxy.entry.instance,
      egress: egressOf(proxy.cluster.name, proxy.entry),
      target,
      ttlSeconds,
      grantedMs: nowMs,
      expiresMs: nowMs + ttlSeconds * 1000,
      gone: false,
    };
    const lease = this.#leases.add(row, proxy);
    changes.push({ kind: 'put-lease', row }, ...this.#use(proxy, token, strategy === 'spread'));
    return { result: { ok: true, lease: leaseView(lease, proxy, nowMs) }, changes };
  }

  /**
   * Marks the proxy as the last one used. Only who asks for `spread` pays for a row: after a
   * restart, uses under the other strategy are known from the leases that still exist.
   */
  #use(proxy: ProxyRecord, token: number, isDurable: boolean): Change[] {
    proxy.usedToken = token;
    const { cluster, entry } = proxy;
    const row = { cluster: cluster.name, uid: entry.uid, token };
    return isDurable ? [{ kind: 'put-use', row }] : [];
  }

  #nextToken(): { token: number; changes: Change[] } {
    const token = ++this.#lastToken;
    if (token <= this.#tokenCeiling) return { token, changes: [] };
    this.#tokenCeiling += TOKEN_BLOCK;
    return { token, changes: [{ kind: 'put-token-ceiling', value: this.#tokenCeiling }] };
  }

  /** The proxy of a lease, while it is still the machine that was leased. */
  #machineOf(row: LeaseRow): ProxyRecord | undefined {
    const proxy = this.#inventory.find(row.cluster, row.uid);
    return proxy?.entry.instance === row.instance ? proxy : undefined;
  }

  #syncResponse(
    cluster: string,
    session: string,
    acceptedSeq: number,
    nowMs: number,
  ): SyncResponse {
    const proxies = [...(this.#inventory.clusters.get(cluster)?.proxies ?? [])];
    const leases = proxies
      .filter(([, proxy]) => proxy.leases.size > 0)
      .map(([uid, proxy]): [string, number] => [uid, proxy.leases.size]);
    return {
      acceptedSeq,
      serverTime: nowMs,
      leases: Object.fromEntries(leases),
      reports: this.#feedback.take(cluster, `${session} ${acceptedSeq}`),
      counters: this.#feedback.counters,
    };
  }

  #ttlTooLong(): TtlRefusal {
    return { ok: false, code: 'ttl_too_long', maxTtlSeconds: this.#rules.maxTtlSeconds };
  }
}

function unchanged<Result>(result: Result): Mutation<Result> {
  return { result, changes: [] };
}

function overload(reason: string): Overload {
  return { ok: false, code: 'overloaded', reason };
}

/** Why a lease that is not live is not. */
function refusalOf(lease: Lease | undefined): LeaseRefusal {
  if (lease === undefined) return { ok: false, code: 'unknown_lease' };
  return { ok: false, code: lease.state === 'gone' ? 'proxy_gone' : 'lease_expired' };
}
