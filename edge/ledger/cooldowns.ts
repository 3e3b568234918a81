/**
 * Pairs of (egress, target) that must rest. A record outlives its cooldown, because the next
 * offence doubles the length; it is forgotten when nothing happened for the longest cooldown.
 */
import { Deadlines } from './deadlines.ts';
import { EVERY_TARGET } from './egress.ts';
import { type Change, COOLDOWNS_MAX, type CooldownRow } from './model.ts';
import type { Rules } from './rules.ts';

export interface Offence {
  readonly egress: string;
  readonly target: string;
  /** When the lease that reports it was granted. */
  readonly grantedMs: number;
  /** The length that the target itself asked for (Retry-After). */
  readonly lengthMs: number | undefined;
}

interface Cooldown {
  row: CooldownRow;
}

export class Cooldowns {
  readonly #rules: Rules;
  readonly #byEgress = new Map<string, Map<string, Cooldown>>();
  readonly #forgetting = new Deadlines<Cooldown>();

  constructor(rules: Rules, rows: readonly CooldownRow[]) {
    this.#rules = rules;
    for (const row of rows) this.#set(row);
  }

  /** When all cooldowns that bind one of the egresses for the target have ended; 0 for none. */
  endMs(egresses: readonly string[], target: string | null): number {
    let endMs = 0;
    for (const egress of egresses) {
      const targets = this.#byEgress.get(egress);
      if (targets === undefined) continue;
      endMs = Math.max(endMs, targets.get(EVERY_TARGET)?.row.untilMs ?? 0);
      if (target !== null) endMs = Math.max(endMs, targets.get(target)?.row.untilMs ?? 0);
    }
    return endMs;
  }

  /**
   * Notes an offence. It counts as repeated, and doubles the length, when the pair was tried again
   * after its cooldown: the other leases that were already out when a ban fell all report that
   * same ban. A cooldown is never shortened. Returns undefined when no more can be remembered.
   */
  offend(offence: Offence, nowMs: number): Change[] | undefined {
    const { egress, target } = offence;
    const known = this.#byEgress.get(egress)?.get(target)?.row;
    const room = known === undefined ? this.#makeRoom(nowMs) : [];
    if (room === undefined) return undefined;
    const repeated = known !== undefined && offence.grantedMs >= known.untilMs;
    const strikes = (known?.strikes ?? 1) + (repeated ? 1 : 0);
    const untilMs = Math.max(known?.untilMs ?? 0, nowMs + this.#lengthMs(offence, strikes));
    const row = { egress, target, strikes, untilMs };
    this.#set(row);
    return [...room, { kind: 'put-cooldown', row }];
  }

  /** A success of a lease granted after the cooldown ended: the next offence is a first one. */
  forgive(egresses: readonly string[], target: string, grantedMs: number): Change[] {
    const changes: Change[] = [];
    for (const egress of egresses) {
      const cooldown = this.#byEgress.get(egress)?.get(target);
      if (cooldown === undefined || grantedMs < cooldown.row.untilMs) continue;
      changes.push(this.#delete(cooldown));
    }
    return changes;
  }

  /** How many pairs rest at `nowMs`. */
  active(nowMs: number): number {
    let count = 0;
    for (const targets of this.#byEgress.values()) {
      for (const { row } of targets.values()) if (row.untilMs > nowMs) count++;
    }
    return count;
  }

  /** Drops up to `rowsMax` records that are due to be forgotten. */
  sweep(nowMs: number, rowsMax: number): Change[] {
    const changes: Change[] = [];
    while (changes.length < rowsMax) {
      const cooldown = this.#forgetting.takeDue(nowMs);
      if (cooldown === undefined) break;
      changes.push(this.#delete(cooldown));
    }
    return changes;
  }

  /** When the next record can be forgotten. */
  get nextSweepMs(): number | undefined {
    return this.#forgetting.peek()?.dueMs;
  }

  #lengthMs(offence: Offence, strikes: number): number {
    const { cooldownMs, maxCooldownMs } = this.#rules;
    return Math.min(offence.lengthMs ?? cooldownMs * 2 ** (strikes - 1), maxCooldownMs);
  }

  /** Below the maximum nothing; at it, the record that ended first goes, if one has ended. */
  #makeRoom(nowMs: number): Change[] | undefined {
    if (this.#forgetting.size < COOLDOWNS_MAX) return [];
    const oldest = this.#forgetting.peek()?.item;
    if (oldest === undefined || oldest.row.untilMs > nowMs) return undefined;
    return [this.#delete(oldest)];
  }

  #set(row: CooldownRow): void {
    let targets = this.#byEgress.get(row.egress);
    if (targets === undefined) {
      targets = new Map();
      this.#byEgress.set(row.egress, targets);
    }
    const cooldown = targets.get(row.target) ?? { row };
    cooldown.row = row;
    targets.set(row.target, cooldown);
    this.#forgetting.set(cooldown, row.untilMs + this.#rules.maxCooldownMs);
  }

  #delete(cooldown: Cooldown): Change {
    const { egress, target } = cooldown.row;
    this.#forgetting.delete(cooldown);
    const targets = this.#byEgress.get(egress);
    targets?.delete(target);
    if (targets?.size === 0) this.#byEgress.delete(egress);
    return { kind: 'delete-cooldown', egress, target };
  }
}
