/**
 * The book of a shard: inventory, leases and cooldowns in one place, with the rules that join them.
 * Pure: it has no clock, no randomness and no storage. A mutation changes the book and returns the
 * rows that make the change durable; whoever cannot write them must throw the book away and build
 * it again from storage. A book built from the rows answers as the one that yielded them.
 *
 * Every call first brings the book to the time that it is given; a mutation ends by serving those
 * who wait, whose answers are then taken with `takeSettled`.
 */
import type { ReportRequest, Stats } from '#shared/wire/lease.ts';
import type { InventoryEntry, SyncResponse } from '#shared/wire/sync.ts';
import { Acquiring, type Settled } from './acquiring.ts';
import type { AcquireCall, Client, FindCall } from './calls.ts';
import { Clients } from './clients.ts';
import { Cooldowns } from './cooldowns.ts';
import { egressesOf, egressOf } from './egress.ts';
import { Feedback } from './feedback.ts';
import { Inventory } from './inventory.ts';
import { Leases } from './leases.ts';
import { countStats, listProxies, type ProxyPage, type ProxyQuery } from './listing.ts';
import {
  type Change,
  type CooldownRow,
  type Lease,
  type Leftover,
  loadOf,
  type Mutation,
  type ProxyRecord,
  type Snapshot,
} from './model.ts';
import { Moves, type Strayed } from './moves.ts';
import { PassedKeys } from './passed-keys.ts';
import { type Forgiveness, Reports } from './reports.ts';
import type {
  AcquireResult,
  FindResult,
  LeaseRefusal,
  LeaseResult,
  RenewResult,
  ReportResult,
  SyncResult,
} from './results.ts';
import type { Rules } from './rules.ts';
import { Selection } from './selection.ts';
import { Sessions } from './sessions.ts';
import { type SyncPart, Syncs } from './sync.ts';
import { termsOf } from './terms.ts';
import { leaseView } from './views.ts';
import { Waiting } from './waiting.ts';

export interface BookOptions {
  readonly rules: Rules;
  /** Which of the shards this is. */
  readonly shard: number;
  /** The queue of the book that this one takes the place of. */
  readonly waiting?: Waiting;
  readonly clients?: Clients;
}

export class Book {
  readonly clients: Clients;
  readonly waiting: Waiting;
  readonly #rules: Rules;
  readonly #inventory: Inventory;
  readonly #selection: Selection;
  readonly #leases: Leases;
  readonly #cooldowns: Cooldowns;
  readonly #sessions: Sessions;
  readonly #passed: PassedKeys;
  readonly #acquiring: Acquiring;
  readonly #syncs: Syncs;
  readonly #feedback = new Feedback();
  /** Egresses that a sync is about to bring, by cluster: their cooldowns are taken already. */
  readonly #watched = new Map<string, Set<string>>();
  readonly #reports: Reports;
  readonly #moves: Moves;

  constructor(options: BookOptions, snapshot: Snapshot) {
    const { rules, shard } = options;
    this.#rules = rules;
    this.clients = options.clients ?? new Clients();
    this.waiting = options.waiting ?? new Waiting();
    this.#inventory = new Inventory(rules, {
      added: (proxy) => this.#added(proxy),
      replacing: (proxy) => this.#endLeases(proxy),
      changed: (proxy, before) => this.#changed(proxy, before),
      removed: (proxy) => this.#removed(proxy),
      touched: (proxy) => this.#selection.touch(proxy),
    });
    this.#leases = new Leases(
      rules,
      (cluster, uid) => this.#inventory.find(cluster, uid),
      ({ row }, proxy) => this.#leaseEnded(row.client, proxy),
    );
    this.#cooldowns = new Cooldowns(rules, snapshot.cooldowns, (proxy, target) =>
      this.#selection.rested(proxy, target),
    );
    this.#selection = new Selection(this.#inventory, this.#cooldowns.rests);
    this.#sessions = new Sessions(snapshot.sessions);
    this.#passed = new PassedKeys(snapshot.passed);
    this.#moves = new Moves(this.#inventory, shard);
    this.#syncs = new Syncs(rules, shard, this.#inventory, this.#moves);
    this.#reports = new Reports({
      inventory: this.#inventory,
      cooldowns: this.#cooldowns,
      clients: this.clients,
      feedback: this.#feedback,
      shards: () => this.shards,
    });
    const floor = snapshot.leases.reduce((max, { token }) => Math.max(max, token), 0);
    this.#acquiring = new Acquiring(
      {
        rules,
        shard,
        inventory: this.#inventory,
        selection: this.#selection,
        leases: this.#leases,
        sessions: this.#sessions,
        passed: this.#passed,
        clients: this.clients,
        waiting: this.waiting,
      },
      Math.max(floor, snapshot.tokenFloor),
    );
    this.#inventory.restore(snapshot);
    for (const row of snapshot.leases) this.#leases.restore(row);
    for (const cluster of this.#inventory.clusters.values()) this.#moves.mark(cluster);
  }

  /**
   * Grants a lease, queues the request, or says why not. Without a result it is queued; the answer
   * comes with `takeSettled`.
   */
  acquire(call: AcquireCall, client: Client, nowMs: number): Mutation<AcquireResult | undefined> {
    return this.#mutate(nowMs, () => {
      const answer = this.#acquiring.acquire(termsOf(call, client, this.#rules), nowMs);
      const { result } = answer;
      if (result !== undefined)
        this.clients.count(client.name, result.ok ? 'granted' : result.code);
      return answer;
    });
  }

  /** What there is of an idempotency or session key. */
  find(call: FindCall, nowMs: number): FindResult {
    this.#advance(nowMs);
    return this.#acquiring.find(call, nowMs);
  }

  /** The lease, if it is live. */
  lease(id: string, nowMs: number): LeaseResult {
    this.#advance(nowMs);
    const lease = this.#leases.find(id);
    if (lease?.proxy === undefined) return refusalOf(lease);
    return { ok: true, lease: leaseView(lease, lease.proxy, nowMs) };
  }

  /** Gives a live lease `ttlSeconds` from now, be that later or earlier than it was. */
  renew(id: string, ttlSeconds: number | undefined, nowMs: number): Mutation<RenewResult> {
    return this.#mutate<RenewResult>(nowMs, () => {
      const seconds = ttlSeconds ?? this.#rules.defaultTtlSeconds;
      const { maxTtlSeconds } = this.#rules;
      if (seconds > maxTtlSeconds)
        return unchanged({ ok: false, code: 'ttl_too_long', maxTtlSeconds });
      const lease = this.#leases.find(id);
      if (lease?.proxy === undefined) return unchanged(refusalOf(lease));
      const changes = [this.#leases.renew(lease, seconds, nowMs)];
      this.#selection.touch(lease.proxy);
      return { result: { ok: true, lease: leaseView(lease, lease.proxy, nowMs) }, changes };
    });
  }

  /**
   * Ends and forgets the lease, or takes the request that waits under the id out of the queue. When
   * it is but `abandoned`, others with the same idempotency key may still want it.
   */
  release(id: string, isAbandoned: boolean, nowMs: number): Mutation<undefined> {
    return this.#change(nowMs, () => {
      this.#acquiring.leave(id);
      const lease = this.#leases.find(id);
      if (lease === undefined || (isAbandoned && lease.isShared)) return [];
      return [this.#leases.release(lease)];
    });
  }

  /** Takes what a crawler saw through its lease, also for a while after the lease has ended. */
  report(id: string, report: ReportRequest, nowMs: number): Mutation<ReportResult> {
    return this.#mutate<ReportResult>(nowMs, () => {
      const lease = this.#leases.find(id);
      return lease === undefined
        ? unchanged(refusalOf(lease))
        : this.#reports.take(lease, report, nowMs);
    });
  }

  /** Takes what the agent of a cluster pushes, as far as it concerns this shard. */
  sync(cluster: string, part: SyncPart, nowMs: number): Mutation<SyncResult> {
    return this.#mutate<SyncResult>(nowMs, () => {
      const { changes, ...outcome } = this.#syncs.apply(cluster, part, nowMs);
      if (!outcome.ok) return { result: outcome, changes };
      const { request, handover } = part;
      if (handover !== undefined) this.#acquiring.raiseTokens(handover.tokenFloor);
      const { page, kind, session } = request;
      if (page === undefined || page.index === page.of - 1) this.#watched.delete(cluster);
      const beat = this.#syncs.isBeatDue(cluster, kind, nowMs);
      const response = this.#syncResponse(cluster, session, outcome.acceptedSeq, nowMs);
      return { result: { ok: true, response, beat }, changes };
    });
  }

  /** See `LedgerCalls.reshape`. */
  reshape(name: string, shards: number, nowMs: number): Mutation<Leftover> {
    return this.#mutate(nowMs, () => {
      const cluster = this.#inventory.clusters.get(name);
      const changes = cluster === undefined ? [] : this.#moves.reshape(cluster, shards);
      const leases = this.#moves.leftovers(cluster);
      return { result: { leases, lastToken: this.#acquiring.lastToken }, changes };
    });
  }

  proxies(query: ProxyQuery, nowMs: number): ProxyPage {
    this.#advance(nowMs);
    return listProxies(this.#inventory, query);
  }

  stats(nowMs: number): Stats {
    this.#advance(nowMs);
    return {
      ...countStats(this.#inventory, nowMs),
      leases: { active: this.#leases.active },
      waiting: this.waiting.size,
      cooldowns: this.#cooldowns.active,
      clients: this.clients.stats(this.#leases.byClient),
    };
  }

  /** Serves those who wait, by what the time alone has brought. */
  tick(nowMs: number): Mutation<undefined> {
    return this.#change(nowMs, () => []);
  }

  /** When `tick` has something to do; undefined while nobody waits. */
  get nextTickMs(): number | undefined {
    const deadlineMs = this.waiting.nextDeadlineMs;
    if (deadlineMs === undefined) return undefined;
    if (this.#selection.hasImproved) return 0;
    const { nextDueMs = deadlineMs } = this.#leases;
    const { nextEndMs = deadlineMs } = this.#cooldowns;
    return Math.min(deadlineMs, nextDueMs, nextEndMs);
  }

  /** Answers to requests that have waited. */
  takeSettled(): readonly Settled[] {
    return this.#acquiring.takeSettled();
  }

  /** Deletes up to `rowsMax` rows that say nothing any more. No answer depends on it. */
  sweep(nowMs: number, rowsMax: number): Mutation<undefined> {
    return this.#mutate(nowMs, () => {
      const changes: Change[] = this.#moves.sweep();
      changes.push(...this.#leases.sweep(Math.max(0, rowsMax - changes.length)));
      if (changes.length > 0) changes.push(this.#tokenFloor());
      changes.push(...this.#cooldowns.sweep(nowMs, Math.max(0, rowsMax - changes.length)));
      changes.push(...this.#passed.sweep(nowMs, Math.max(0, rowsMax - changes.length)));
      return { result: undefined, changes };
    });
  }

  /** When a sweep will find something to delete; undefined while nothing is remembered. */
  get nextSweepMs(): number | undefined {
    const leavingMs = this.#moves.hasLeaving ? (this.#leases.nextDueMs ?? 0) : undefined;
    const due = [
      leavingMs,
      this.#leases.nextSweepMs,
      this.#cooldowns.nextSweepMs,
      this.#passed.nextSweepMs,
    ].filter((dueMs) => dueMs !== undefined);
    return due.length === 0 ? undefined : Math.min(...due);
  }

  /** The egresses of these entries whose cooldowns other shards know and this one does not. */
  unknownEgresses(cluster: string, entries: readonly InventoryEntry[]): string[] {
    const egresses = entries.flatMap((entry) => egressesOf(cluster, entry));
    return [...new Set(egresses)].filter((egress) => !this.#cooldowns.hasBehind(egress));
  }

  /** From now on cooldowns of these are taken, though no proxy is behind them yet. */
  watch(cluster: string, egresses: readonly string[]): void {
    const watched = this.#watched.get(cluster) ?? new Set();
    for (const egress of egresses) watched.add(egress);
    this.#watched.set(cluster, watched);
  }

  /** What is known of the cooldowns of these egresses. */
  cooldownsOf(egresses: readonly string[], nowMs: number): readonly CooldownRow[] {
    this.#advance(nowMs);
    return this.#cooldowns.rowsOf(egresses);
  }

  get hasPendingCooldowns(): boolean {
    return this.#cooldowns.pendingCount > 0;
  }

  /** Cooldowns that other shards must still be told of. */
  pendingCooldowns(): readonly CooldownRow[] {
    return this.#cooldowns.pending();
  }

  /** Successes that ended a doubling, for the other shards to hear of. */
  takeForgiven(): readonly Forgiveness[] {
    return this.#reports.takeForgiven();
  }

  /** The largest number of shards that any cluster is divided among, or is about to be. */
  get shards(): number {
    const counts = [...this.#inventory.clusters.values()].map(({ agent }) =>
      Math.max(agent.shards, agent.nextShards),
    );
    return Math.max(1, ...counts);
  }

  /** All other shards have heard of these. */
  cooldownsShared(rows: readonly CooldownRow[], nowMs: number): Mutation<undefined> {
    return this.#change(nowMs, () => this.#cooldowns.settled(rows));
  }

  /** Takes what another shard tells of egresses that proxies here are behind. */
  cool(rows: readonly CooldownRow[], nowMs: number): Mutation<undefined> {
    return this.#change(nowMs, () =>
      rows
        .filter(({ egress }) => this.#cooldowns.hasBehind(egress) || this.#isWatched(egress))
        .flatMap((row) => this.#cooldowns.merge(row, nowMs)),
    );
  }

  /** Another shard had a success on an egress. */
  forgive(successes: readonly Forgiveness[], nowMs: number): Mutation<undefined> {
    return this.#change(nowMs, () =>
      successes.flatMap(({ egress, target, grantedMs }) =>
        this.#cooldowns.forgive([egress], target, grantedMs),
      ),
    );
  }

  /** See `Moves.held`. */
  held(
    cluster: string,
    instances: Readonly<Record<string, string>>,
    nowMs: number,
  ): Record<string, number> {
    this.#advance(nowMs);
    return this.#moves.held(cluster, instances);
  }

  /** See `Moves.heldElsewhere`. */
  heldElsewhere(cluster: string): ReadonlyMap<number, Readonly<Record<string, string>>> {
    return this.#moves.heldElsewhere(cluster);
  }

  /** See `Moves.setHeld`. */
  setHeld(
    cluster: string,
    shard: number,
    counts: Readonly<Record<string, number>>,
    nowMs: number,
  ): Mutation<undefined> {
    return this.#change(nowMs, () => this.#moves.setHeld(cluster, shard, counts));
  }

  /** See `Moves.entry`. */
  entry(cluster: string, uid: string): InventoryEntry | undefined {
    return this.#moves.entry(cluster, uid);
  }

  /** See `Moves.strayed`. */
  strayed(id: string): Strayed | undefined {
    return this.#moves.strayed(this.#leases.find(id));
  }

  /** See `Moves.follow`. */
  follow(
    cluster: string,
    uid: string,
    entry: InventoryEntry | undefined,
    nowMs: number,
  ): Mutation<undefined> {
    return this.#change(nowMs, () => this.#moves.follow(cluster, uid, entry));
  }

  #change(nowMs: number, work: () => readonly Change[]): Mutation<undefined> {
    return this.#mutate(nowMs, () => ({ result: undefined, changes: work() }));
  }

  #mutate<Result>(nowMs: number, work: () => Mutation<Result>): Mutation<Result> {
    this.#advance(nowMs);
    const { result, changes } = work();
    const served = this.#acquiring.serve(nowMs);
    return { result, changes: served.length === 0 ? changes : [...changes, ...served] };
  }

  #advance(nowMs: number): void {
    this.#leases.advance(nowMs);
    this.#cooldowns.advance(nowMs);
    this.#inventory.advance(nowMs);
  }

  #leaseEnded(client: string, proxy: ProxyRecord): void {
    this.#selection.touch(proxy);
    if (this.waiting.size > 0) this.#acquiring.relieved(client);
  }

  #added(proxy: ProxyRecord): void {
    this.#leases.adopt(proxy);
    this.#cooldowns.place(proxy, egressesOf(proxy.cluster.name, proxy.entry));
    this.#selection.reorder(proxy);
  }

  #changed(proxy: ProxyRecord, before: InventoryEntry): void {
    const { entry, cluster } = proxy;
    if (entry.egressIP !== before.egressIP || entry.instance !== before.instance) {
      this.#cooldowns.place(proxy, egressesOf(cluster.name, entry));
    }
    const isSame = (key: 'latencyMillis' | 'name' | 'namespace') => entry[key] === before[key];
    if (JSON.stringify(entry.attributes) !== JSON.stringify(before.attributes)) {
      this.#selection.relabel(proxy);
    } else if (!isSame('latencyMillis') || !isSame('name') || !isSame('namespace')) {
      this.#selection.reorder(proxy);
    } else this.#selection.touch(proxy);
  }

  #removed(proxy: ProxyRecord): readonly Change[] {
    const ended = this.#endLeases(proxy);
    this.#cooldowns.place(proxy, []);
    this.#selection.remove(proxy);
    const slots = this.#leases.abandon(proxy);
    const floor = slots.length === 0 ? [] : [this.#tokenFloor()];
    return [...ended, ...this.#sessions.abandon(proxy), ...slots, ...floor];
  }

  #endLeases(proxy: ProxyRecord): readonly Change[] {
    const egress = egressOf(proxy);
    return [...proxy.leases].map((lease) => this.#leases.endWithMachine(lease, egress));
  }

  /** Rows of leases are about to go, maybe the one with the last token. */
  #tokenFloor(): Change {
    return { kind: 'put-token-floor', value: this.#acquiring.lastToken };
  }

  #isWatched(egress: string): boolean {
    for (const watched of this.#watched.values()) if (watched.has(egress)) return true;
    return false;
  }

  #syncResponse(
    cluster: string,
    session: string,
    acceptedSeq: number,
    nowMs: number,
  ): SyncResponse {
    const leases: Record<string, number> = {};
    for (const [uid, proxy] of this.#inventory.clusters.get(cluster)?.proxies ?? []) {
      const load = loadOf(proxy);
      if (!proxy.leaving && (load > 0 || proxy.entry.draining)) leases[uid] = load;
    }
    return {
      acceptedSeq,
      serverTime: nowMs,
      leases,
      reports: this.#feedback.take(cluster, `${session} ${acceptedSeq}`),
      counters: this.clients.outcomes,
    };
  }
}

function unchanged<Result>(result: Result): Mutation<Result> {
  return { result, changes: [] };
}

/** Why a lease that is not live is not. */
function refusalOf(lease: Lease | undefined): LeaseRefusal {
  if (lease === undefined) return { ok: false, code: 'unknown_lease' };
  return { ok: false, code: lease.state === 'gone' ? 'proxy_gone' : 'lease_expired' };
}
