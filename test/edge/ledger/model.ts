/**
 * The ledger once more, slow and obviously right: it keeps the history and works out every answer
 * from the beginning. It decides what may be granted; which of the eligible is best is tested by
 * tables.
 */
import type { ReportResult } from '#shared/wire/lease.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { RULES } from './harness.ts';

interface ModelLease {
  readonly uid: string;
  readonly instance: string;
  readonly target: string | undefined;
  readonly grantedMs: number;
  expiresMs: number;
  /** Released leases are deleted; this one lost its proxy. */
  gone: boolean;
}

interface Offence {
  readonly egress: string;
  readonly target: string | undefined;
  readonly grantedMs: number;
  readonly result: ReportResult;
  readonly lengthMs: number | undefined;
  readonly atMs: number;
}

export class Model {
  readonly proxies = new Map<string, InventoryEntry>();
  readonly leases = new Map<string, ModelLease>();
  /** Address by machine, as last seen. */
  readonly #addresses = new Map<string, string>();
  readonly #reports: Offence[] = [];
  lastSyncMs = Number.NEGATIVE_INFINITY;

  put(entry: InventoryEntry, nowMs: number): void {
    const before = this.proxies.get(entry.uid);
    if (before !== undefined && before.instance !== entry.instance) this.#end(entry.uid, nowMs);
    const machine = `${entry.uid} ${entry.instance}`;
    if (before?.instance !== entry.instance) this.#addresses.delete(machine);
    if (entry.egressIP !== undefined) this.#addresses.set(machine, entry.egressIP);
    this.proxies.set(entry.uid, entry);
  }

  remove(uid: string, nowMs: number): void {
    this.#end(uid, nowMs);
    this.proxies.delete(uid);
  }

  active(uid: string, nowMs: number): number {
    return [...this.leases.values()].filter(
      (lease) => lease.uid === uid && !lease.gone && lease.expiresMs > nowMs,
    ).length;
  }

  isEligible(uid: string, target: string | undefined, nowMs: number): boolean {
    const entry = this.proxies.get(uid);
    return (
      entry !== undefined &&
      nowMs - this.lastSyncMs < RULES.agentStaleMs &&
      entry.healthy === true &&
      entry.leasable &&
      !entry.draining &&
      this.active(uid, nowMs) < entry.maxLeases &&
      !this.#isCooling(entry, target, nowMs)
    );
  }

  /** What asking for the lease must say. */
  stateOf(id: string, nowMs: number): 'live' | 'lease_expired' | 'proxy_gone' | 'unknown_lease' {
    const lease = this.leases.get(id);
    if (lease === undefined || nowMs >= lease.expiresMs + RULES.cooldownMs) return 'unknown_lease';
    if (lease.gone) return 'proxy_gone';
    return nowMs < lease.expiresMs ? 'live' : 'lease_expired';
  }

  grant(id: string, uid: string, target: string | undefined, ttlMs: number, nowMs: number): void {
    const instance = this.proxies.get(uid)?.instance ?? '';
    const expiresMs = nowMs + ttlMs;
    this.leases.set(id, { uid, instance, target, grantedMs: nowMs, expiresMs, gone: false });
  }

  report(
    id: string,
    result: ReportResult,
    target: string | undefined,
    lengthMs: number | undefined,
    nowMs: number,
  ): void {
    const lease = this.leases.get(id);
    if (lease === undefined || this.stateOf(id, nowMs) === 'unknown_lease') return;
    const { uid, instance, grantedMs } = lease;
    const base = { target: target ?? lease.target, grantedMs, result, lengthMs, atMs: nowMs };
    const [egress = '', ...others] = this.#egresses(uid, instance);
    this.#reports.push({ ...base, egress });
    if (result !== 'ok') return;
    for (const other of others) this.#reports.push({ ...base, egress: other });
  }

  #end(uid: string, nowMs: number): void {
    for (const lease of this.leases.values()) {
      if (lease.uid === uid && lease.expiresMs > nowMs) lease.gone = true;
    }
  }

  #egresses(uid: string, instance: string): string[] {
    const machine = `${uid} ${instance}`;
    const address = this.#addresses.get(machine);
    return address === undefined ? [machine] : [address, machine];
  }

  #isCooling(entry: InventoryEntry, target: string | undefined, nowMs: number): boolean {
    return this.#egresses(entry.uid, entry.instance).some(
      (egress) =>
        this.#cooledMs(egress, undefined) > nowMs ||
        (target !== undefined && this.#cooledMs(egress, target) > nowMs),
    );
  }

  /** Goes through all reports on the pair from the beginning. */
  #cooledMs(egress: string, target: string | undefined): number {
    let untilMs: number | undefined;
    let strikes = 0;
    for (const report of this.#reports) {
      if (report.egress !== egress || report.target !== target) continue;
      const isAfter = untilMs === undefined || report.grantedMs >= untilMs;
      if (report.result === 'ok') {
        if (isAfter) [untilMs, strikes] = [undefined, 0];
        continue;
      }
      if (isAfter) strikes++;
      const lengthMs = report.lengthMs ?? RULES.cooldownMs * 2 ** (strikes - 1);
      const endMs = report.atMs + Math.min(lengthMs, RULES.maxCooldownMs);
      untilMs = Math.max(untilMs ?? 0, endMs);
    }
    return untilMs ?? 0;
  }
}
