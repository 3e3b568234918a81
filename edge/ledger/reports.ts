/**
 * What crawlers report of their leases, and what follows for the egress of each. A report acts on
 * the egress of its own lease alone, and an offence counts once for a lease and target: no client
 * can put more to sleep than it has leased.
 */
import type { ReportRequest } from '#shared/wire/lease.ts';
import type { Clients } from './clients.ts';
import type { Cooldowns } from './cooldowns.ts';
import { EVERY_TARGET, egressOf, isAddress } from './egress.ts';
import type { Feedback } from './feedback.ts';
import type { Inventory } from './inventory.ts';
import type { Lease, Mutation } from './model.ts';
import type { ReportResult } from './results.ts';

/** Targets that are sent to rest through one lease; more is a way to fill the book. */
const TARGETS_PER_LEASE_MAX = 1_000;

/** A success that other shards should hear of. */
export interface Forgiveness {
  readonly egress: string;
  readonly target: string;
  readonly grantedMs: number;
}

export interface ReportsDeps {
  readonly inventory: Inventory;
  readonly cooldowns: Cooldowns;
  readonly clients: Clients;
  readonly feedback: Feedback;
  /** Number of shards that must hear of cooldowns and successes. */
  readonly shards: () => number;
}

export class Reports {
  readonly #deps: ReportsDeps;
  readonly #forgiven: Forgiveness[] = [];

  constructor(deps: ReportsDeps) {
    this.#deps = deps;
  }

  take(lease: Lease, report: ReportRequest, nowMs: number): Mutation<ReportResult> {
    const { result } = report;
    this.#deps.clients.countReport(lease.row.client, result);
    const target = report.target ?? lease.row.target ?? EVERY_TARGET;
    if (result === 'ok') return this.#forgive(lease, target);
    const { retryAfterSeconds } = report;
    const isAsked = result === 'rate_limited' && retryAfterSeconds !== undefined;
    return this.#offend(lease, target, isAsked ? retryAfterSeconds * 1000 : undefined, {
      result,
      nowMs,
    });
  }

  /** Successes that ended a doubling, for the other shards to hear of. */
  takeForgiven(): readonly Forgiveness[] {
    return this.#forgiven.splice(0);
  }

  #forgive({ row }: Lease, target: string): Mutation<ReportResult> {
    const { cooldowns, shards } = this.#deps;
    const egresses = this.#deps.inventory.machineOf(row)?.egresses ?? [row.egress];
    const { grantedMs } = row;
    const changes = cooldowns.forgive(egresses, target, grantedMs);
    if (changes.length > 0 && shards() > 1) {
      const shared = egresses.filter(isAddress);
      this.#forgiven.push(...shared.map((egress) => ({ egress, target, grantedMs })));
    }
    return { result: { ok: true }, changes };
  }

  #offend(
    lease: Lease,
    target: string,
    lengthMs: number | undefined,
    { result, nowMs }: { readonly result: 'rate_limited' | 'banned'; readonly nowMs: number },
  ): Mutation<ReportResult> {
    const { inventory, cooldowns, feedback, shards } = this.#deps;
    const { reported = new Set(), row } = lease;
    if (reported.has(target)) return { result: { ok: true }, changes: [] };
    if (reported.size >= TARGETS_PER_LEASE_MAX) {
      return refuse('too many targets reported through one lease');
    }
    const proxy = inventory.machineOf(row);
    const egress = proxy === undefined ? row.egress : egressOf(proxy);
    const isShared = isAddress(egress) && shards() > 1;
    const offence = { egress, target, grantedMs: row.grantedMs, lengthMs, isShared };
    const changes = cooldowns.offend(offence, nowMs);
    if (changes === undefined) return refuse('too many cooldowns');
    lease.reported = reported.add(target);
    if (proxy !== undefined) feedback.note(row.cluster, row.uid, result, target);
    return { result: { ok: true }, changes };
  }
}

function refuse(reason: string): Mutation<ReportResult> {
  return { result: { ok: false, code: 'overloaded', reason }, changes: [] };
}
