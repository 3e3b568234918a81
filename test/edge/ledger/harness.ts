/** A book together with the rows that it has yielded, as the Durable Object keeps them. */
import { Book, type BookOptions } from '#edge/ledger/book.ts';
import type { AcquireCall, Client } from '#edge/ledger/calls.ts';
import type { Change, Handover, Mutation, Snapshot } from '#edge/ledger/model.ts';
import type { AcquireResult } from '#edge/ledger/results.ts';
import type { Rules } from '#edge/ledger/rules.ts';
import type { AcquireRequest, ReportRequest } from '#shared/wire/lease.ts';
import { type InventoryEntry, type SyncRequest, syncRequestSchema } from '#shared/wire/sync.ts';
import { inventoryEntry } from '../inventory-entry.ts';

export const RULES: Rules = {
  defaultTtlSeconds: 300,
  maxTtlSeconds: 3600,
  cooldownMs: 300_000,
  maxCooldownMs: 86_400_000,
  agentStaleMs: 90_000,
};

export const START_MS = Date.UTC(2026, 0, 1);

export const entry = (name: string, overrides: Partial<InventoryEntry> = {}) =>
  inventoryEntry(name, { maxLeases: 2, ...overrides });

interface Write {
  readonly table: string;
  readonly key: readonly string[];
  /** undefined deletes. */
  readonly row?: unknown;
  /** Deletes only what has this id. */
  readonly ifID?: string;
}

function writesOf(change: Change): Write[] {
  switch (change.kind) {
    case 'put-agent':
      return [{ table: 'agents', key: [change.row.cluster], row: change.row }];
    case 'put-proxy': {
      const { row } = change;
      return [{ table: 'proxies', key: [row.cluster, row.entry.uid], row }];
    }
    case 'delete-proxy':
      return [{ table: 'proxies', key: [change.cluster, change.uid] }];
    case 'put-lease':
    case 'release-lease':
      return [{ table: 'leases', key: slotKey(change.row), row: change.row }];
    case 'delete-lease':
      return [{ table: 'leases', key: slotKey(change.row), ifID: change.row.id }];
    case 'delete-slots': {
      const { cluster, uid, slots } = change;
      return slots.map((slot) => ({ table: 'leases', key: slotKey({ cluster, uid, slot }) }));
    }
    case 'put-cooldown':
      return [{ table: 'cooldowns', key: [change.row.egress, change.row.target], row: change.row }];
    case 'delete-cooldown':
      return [{ table: 'cooldowns', key: [change.egress, change.target] }];
    case 'put-session':
      return [{ table: 'sessions', key: [change.row.key], row: change.row }];
    case 'delete-session':
      return [{ table: 'sessions', key: [change.key] }];
    case 'put-passed':
      return [{ table: 'passed', key: [change.row.key], row: change.row }];
    case 'delete-passed':
      return [{ table: 'passed', key: [change.key] }];
    case 'put-token-floor':
      return [{ table: 'floor', key: [], row: change.value }];
  }
}

function slotKey({ cluster, uid, slot }: { cluster: string; uid: string; slot: number }) {
  return [cluster, uid, String(slot)];
}

class RowStore {
  readonly #tables = new Map<string, Map<string, unknown>>();

  write(changes: readonly Change[]): void {
    for (const change of changes) {
      for (const { table, key, row, ifID } of writesOf(change)) {
        const rows = this.#tables.get(table) ?? new Map<string, unknown>();
        this.#tables.set(table, rows);
        const there = rows.get(JSON.stringify(key)) as { id?: string } | undefined;
        if (ifID !== undefined && there?.id !== ifID) continue;
        if (row === undefined) rows.delete(JSON.stringify(key));
        else rows.set(JSON.stringify(key), structuredClone(row));
      }
    }
  }

  copy(): ReadonlyMap<string, ReadonlyMap<string, unknown>> {
    return structuredClone(this.#tables);
  }

  restore(tables: ReadonlyMap<string, ReadonlyMap<string, unknown>>): void {
    this.#tables.clear();
    for (const [table, rows] of tables) this.#tables.set(table, new Map(rows));
  }

  snapshot(): Snapshot {
    return structuredClone({
      agents: this.#rows<Snapshot['agents'][number]>('agents'),
      proxies: this.#rows<Snapshot['proxies'][number]>('proxies'),
      leases: this.#rows<Snapshot['leases'][number]>('leases'),
      cooldowns: this.#rows<Snapshot['cooldowns'][number]>('cooldowns'),
      sessions: this.#rows<Snapshot['sessions'][number]>('sessions'),
      passed: this.#rows<Snapshot['passed'][number]>('passed'),
      tokenFloor: this.#rows<number>('floor')[0] ?? 0,
    });
  }

  #rows<Row>(table: string): Row[] {
    return [...(this.#tables.get(table)?.values() ?? [])] as Row[];
  }
}

const CLIENT: Client = { name: 'tester' };

export interface LedgerOptions extends Partial<Rules> {
  readonly shard?: number;
  readonly shards?: number;
}

/** What a call has beyond the request itself. */
export type Extras = Partial<Omit<AcquireCall, 'request'>> & { readonly client?: Client };

export class Ledger {
  nowMs = START_MS;
  book: Book;
  readonly store = new RowStore();
  readonly rules: Rules;
  readonly shard: number;
  shards: number;
  /** Rows that the last mutation yielded. */
  changes: readonly Change[] = [];
  /** Answers to requests that have waited, by id. */
  readonly answers = new Map<string, AcquireResult>();
  #ids = 0;
  readonly #seqs = new Map<string, number>();

  constructor({ shard = 0, shards = 1, ...rules }: LedgerOptions = {}) {
    this.rules = { ...RULES, ...rules };
    this.shard = shard;
    this.shards = shards;
    this.book = this.#build();
  }

  restart(): void {
    this.book = this.#build();
  }

  /** The next syncs come for so many shards. */
  resize(shards: number): void {
    this.shards = shards;
  }

  /** As the object does when a commit has failed: those who wait go on waiting. */
  rebuild(): void {
    const { waiting, clients } = this.book;
    this.book = this.#build({ waiting, clients });
  }

  advance(seconds: number): void {
    this.nowMs += seconds * 1000;
  }

  /** The answer, or undefined while the request waits. */
  ask(request: AcquireRequest = {}, extras: Extras = {}) {
    const { client = CLIENT, ...rest } = extras;
    const leaseID = rest.leaseID ?? `lease-${++this.#ids}`;
    const waitMs = (request.waitSeconds ?? 0) * 1000;
    const call: AcquireCall = { request, waitMs, place: 'first', ...rest, leaseID };
    return this.commit(this.book.acquire(call, client, this.nowMs));
  }

  acquire(request: AcquireRequest = {}, extras: Extras = {}): AcquireResult {
    const result = this.ask(request, extras);
    if (result === undefined) throw new Error('it waits');
    return result;
  }

  /** A lease that must be granted. */
  granted(request: AcquireRequest = {}, extras: Extras = {}) {
    const result = this.acquire(request, extras);
    if (!result.ok) throw new Error(`not granted: ${JSON.stringify(result)}`);
    return result.lease;
  }

  /** A refusal that must be `no_match`. */
  refused(request: AcquireRequest = {}, extras: Extras = {}) {
    const result = this.acquire(request, extras);
    if (result.ok || result.code !== 'no_match') {
      throw new Error(`not refused: ${JSON.stringify(result)}`);
    }
    return result.noMatch;
  }

  /** Lets a request wait, under an id of its own. */
  queue(leaseID: string, request: AcquireRequest = {}, extras: Extras = {}): void {
    const result = this.ask({ waitSeconds: 30, ...request }, { leaseID, ...extras });
    if (result !== undefined) throw new Error(`it does not wait: ${JSON.stringify(result)}`);
  }

  /** What a request would be answered, without it being made. */
  look(request: AcquireRequest = {}): AcquireResult {
    const call: AcquireCall = { request, waitMs: 0, place: 'first', leaseID: 'look' };
    const { result } = this.book.acquire(call, CLIENT, this.nowMs);
    this.restart();
    if (result === undefined) throw new Error('it waits');
    return result;
  }

  get(id: string) {
    return this.book.lease(id, this.nowMs);
  }

  renew(id: string, ttlSeconds?: number) {
    return this.commit(this.book.renew(id, ttlSeconds, this.nowMs));
  }

  release(id: string, abandoned = false): void {
    this.commit(this.book.release(id, abandoned, this.nowMs));
  }

  report(id: string, report: ReportRequest) {
    return this.commit(this.book.report(id, report, this.nowMs));
  }

  sync(
    cluster: string,
    request: Omit<Partial<SyncRequest>, 'kind'> & Pick<SyncRequest, 'kind'>,
    handover?: Handover,
  ) {
    const seq = request.seq ?? (this.#seqs.get(cluster) ?? 0) + 1;
    const whole = syncRequestSchema.parse({ term: 1, session: 's1', ...request, seq });
    const part = { request: whole, shards: this.shards, handover };
    const result = this.commit(this.book.sync(cluster, part, this.nowMs));
    if (result.ok) this.#seqs.set(cluster, result.response.acceptedSeq);
    return result;
  }

  /** A full sync of the cluster `c` with these entries. */
  has(...upserts: InventoryEntry[]) {
    return this.sync('c', { kind: 'full', upserts });
  }

  /** Keeps the agent of cluster `c` fresh. */
  heartbeat() {
    return this.sync('c', { kind: 'heartbeat' });
  }

  tick(): void {
    this.commit(this.book.tick(this.nowMs));
  }

  sweep(rowsMax = 1_000): void {
    this.commit(this.book.sweep(this.nowMs, rowsMax));
  }

  list() {
    return this.book.proxies({ selector: {}, limit: 1_000 }, this.nowMs);
  }

  commit<Result>({ result, changes }: Mutation<Result>): Result {
    this.changes = changes;
    this.store.write(changes);
    for (const answer of this.book.takeSettled()) this.answers.set(answer.id, answer.result);
    return result;
  }

  #build(kept: Partial<BookOptions> = {}): Book {
    const { rules, shard } = this;
    return new Book({ rules, shard, ...kept }, this.store.snapshot());
  }
}

/** A ledger that knows of these proxies. */
export function ledgerOf(...entries: InventoryEntry[]): Ledger {
  const ledger = new Ledger();
  ledger.has(...entries);
  return ledger;
}
