/**
 * Pairs of (egress, target) that must rest, and what that means for the proxies behind each egress.
 * A record outlives its cooldown, because the next offence doubles the length; it is forgotten when
 * nothing happened for the longest cooldown.
 *
 * `advance` brings the rests to a time and must come before every look at them.
 */
import { Deadlines } from './deadlines.ts';
import { type Change, COOLDOWNS_MAX, type CooldownRow, type ProxyRecord } from './model.ts';
import { Rests } from './rests.ts';
import type { Rules } from './rules.ts';

export interface Offence {
  readonly egress: string;
  readonly target: string;
  /** When the lease that reports it was granted. */
  readonly grantedMs: number;
  /** The length that the target itself asked for (Retry-After). */
  readonly lengthMs: number | undefined;
  /** The other shards must hear of it. */
  readonly isShared: boolean;
}

interface Cooldown {
  row: CooldownRow;
  /** Its time is not over, as far as the clock was looked at. */
  isResting: boolean;
}

/** Told of each proxy whose rest for a target began, changed or ended. */
export type OnRest = (proxy: ProxyRecord, target: string) => void;

export class Cooldowns {
  readonly rests = new Rests();
  readonly #rules: Rules;
  readonly #onRest: OnRest;
  readonly #byEgress = new Map<string, Map<string, Cooldown>>();
  readonly #proxies = new Map<string, ProxyRecord[]>();
  /** Of those that rest. */
  readonly #ends = new Deadlines<Cooldown>();
  readonly #forgetting = new Deadlines<Cooldown>();
  readonly #pending = new Set<Cooldown>();

  constructor(rules: Rules, rows: readonly CooldownRow[], onRest: OnRest) {
    this.#rules = rules;
    this.#onRest = onRest;
    for (const row of rows) this.#set(row);
  }

  /** The proxy is behind these egresses from now on: new ones are none of those before. */
  place(proxy: ProxyRecord, egresses: readonly string[]): void {
    const targets = new Set<string>();
    for (const egress of proxy.egresses) this.#part(proxy, egress, targets);
    proxy.egresses = egresses;
    for (const egress of egresses) {
      const behind = this.#proxies.get(egress);
      if (behind === undefined) this.#proxies.set(egress, [proxy]);
      else behind.push(proxy);
      for (const target of this.#byEgress.get(egress)?.keys() ?? []) targets.add(target);
    }
    for (const target of targets) this.#settle(proxy, target);
  }

  /** Whether a proxy is behind the egress. */
  hasBehind(egress: string): boolean {
    return this.#proxies.has(egress);
  }

  /** Everything that is known of these egresses. */
  rowsOf(egresses: readonly string[]): CooldownRow[] {
    return egresses.flatMap((egress) =>
      [...(this.#byEgress.get(egress)?.values() ?? [])].map(({ row }) => row),
    );
  }

  /** Ends the rests whose time is over. */
  advance(nowMs: number): void {
    for (;;) {
      const cooldown = this.#ends.takeDue(nowMs);
      if (cooldown === undefined) return;
      cooldown.isResting = false;
      this.#settleAll(cooldown.row);
    }
  }

  /** When the next rest ends. */
  get nextEndMs(): number | undefined {
    return this.#ends.peek()?.dueMs;
  }

  /**
   * Notes an offence. It counts as repeated, and doubles the length, when the pair was tried again
   * after its cooldown: the other leases that were already out when a ban fell all report that
   * same ban. A cooldown is never shortened. Returns undefined when no more can be remembered.
   */
  offend(offence: Offence, nowMs: number): Change[] | undefined {
    const { egress, target, isShared: pending } = offence;
    const known = this.#byEgress.get(egress)?.get(target)?.row;
    const room = known === undefined ? this.#makeRoom(nowMs) : [];
    if (room === undefined) return undefined;
    const repeated = known !== undefined && offence.grantedMs >= known.untilMs;
    const strikes = (known?.strikes ?? 1) + (repeated ? 1 : 0);
    const untilMs = Math.max(known?.untilMs ?? 0, nowMs + this.#lengthMs(offence, strikes));
    return [...room, this.#put({ egress, target, strikes, untilMs, pending })];
  }

  /** Takes over what another shard noted; nothing of what is known here is shortened. */
  merge(row: CooldownRow, nowMs: number): Change[] {
    const { egress, target } = row;
    const known = this.#byEgress.get(egress)?.get(target)?.row;
    const strikes = Math.max(known?.strikes ?? 0, row.strikes);
    const untilMs = Math.max(known?.untilMs ?? 0, row.untilMs);
    if (known !== undefined && known.strikes === strikes && known.untilMs === untilMs) return [];
    const room = known === undefined ? this.#makeRoom(nowMs) : [];
    const pending = known?.pending ?? false;
    return room === undefined
      ? []
      : [...room, this.#put({ egress, target, strikes, untilMs, pending })];
  }

  /** All shards have heard of these rows; one that changed meanwhile stays pending. */
  settled(rows: readonly CooldownRow[]): Change[] {
    return rows.flatMap((row) => {
      const known = this.#byEgress.get(row.egress)?.get(row.target)?.row;
      return known === row ? [this.#put({ ...row, pending: false })] : [];
    });
  }

  /** How many rows the other shards have not all heard of. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  /** Those rows. */
  pending(): CooldownRow[] {
    return [...this.#pending].map(({ row }) => row);
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

  /** How many pairs rest. */
  get active(): number {
    return this.#ends.size;
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

  #put(row: CooldownRow): Change {
    this.#set(row);
    return { kind: 'put-cooldown', row };
  }

  #set(row: CooldownRow): void {
    let targets = this.#byEgress.get(row.egress);
    if (targets === undefined) {
      targets = new Map();
      this.#byEgress.set(row.egress, targets);
    }
    const cooldown = targets.get(row.target) ?? { row, isResting: true };
    cooldown.row = row;
    cooldown.isResting = true;
    if (row.pending) this.#pending.add(cooldown);
    else this.#pending.delete(cooldown);
    targets.set(row.target, cooldown);
    this.#ends.set(cooldown, row.untilMs);
    this.#forgetting.set(cooldown, row.untilMs + this.#rules.maxCooldownMs);
    this.#settleAll(row);
  }

  /** The rests of all proxies behind the egress follow from its cooldowns. */
  #settleAll({ egress, target }: CooldownRow): void {
    for (const proxy of this.#proxies.get(egress) ?? []) this.#settle(proxy, target);
  }

  #settle(proxy: ProxyRecord, target: string): void {
    let untilMs = 0;
    for (const egress of proxy.egresses) {
      const cooldown = this.#byEgress.get(egress)?.get(target);
      if (cooldown?.isResting === true) untilMs = Math.max(untilMs, cooldown.row.untilMs);
    }
    if (this.rests.set(proxy, target, untilMs)) this.#onRest(proxy, target);
  }

  #part(proxy: ProxyRecord, egress: string, targets: Set<string>): void {
    const left = this.#proxies.get(egress)?.filter((other) => other !== proxy) ?? [];
    if (left.length === 0) this.#proxies.delete(egress);
    else this.#proxies.set(egress, left);
    for (const target of this.#byEgress.get(egress)?.keys() ?? []) targets.add(target);
  }

  #delete(cooldown: Cooldown): Change {
    const { egress, target } = cooldown.row;
    this.#forgetting.delete(cooldown);
    this.#ends.delete(cooldown);
    this.#pending.delete(cooldown);
    const targets = this.#byEgress.get(egress);
    targets?.delete(target);
    if (targets?.size === 0) this.#byEgress.delete(egress);
    this.#settleAll(cooldown.row);
    return { kind: 'delete-cooldown', egress, target };
  }
}
