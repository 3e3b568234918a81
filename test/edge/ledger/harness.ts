/** A book together with the rows that it has yielded, as the Durable Object keeps them. */
import { Book } from '#edge/ledger/book.ts';
import type { Change, Mutation, Snapshot } from '#edge/ledger/model.ts';
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
}

function writesOf(change: Change): Write[] {
  switch (change.kind) {
    case 'put-agent':
      return [{ table: 'agents', key: [change.row.cluster], row: change.row }];
    case 'put-proxy': {
      const { row } = change;
      return [{ table: 'proxies', key: [row.cluster, row.entry.uid], row }];
    }
    case 'delete-proxy': {
      const key = [change.cluster, change.uid];
      return [
        { table: 'proxies', key },
        { table: 'uses', key },
      ];
    }
    case 'put-use':
      return [{ table: 'uses', key: [change.row.cluster, change.row.uid], row: change.row }];
    case 'put-lease':
      return [{ table: 'leases', key: [change.row.id], row: change.row }];
    case 'delete-lease':
      return [{ table: 'leases', key: [change.id] }];
    case 'put-cooldown':
      return [{ table: 'cooldowns', key: [change.row.egress, change.row.target], row: change.row }];
    case 'delete-cooldown':
      return [{ table: 'cooldowns', key: [change.egress, change.target] }];
    case 'put-token-ceiling':
      return [{ table: 'ceiling', key: [], row: change.value }];
  }
}

class RowStore {
  readonly #tables = new Map<string, Map<string, unknown>>();

  write(changes: readonly Change[]): void {
    for (const change of changes) {
      for (const { table, key, row } of writesOf(change)) {
        const rows = this.#tables.get(table) ?? new Map<string, unknown>();
        this.#tables.set(table, rows);
        if (row === undefined) rows.delete(JSON.stringify(key));
        else rows.set(JSON.stringify(key), structuredClone(row));
      }
    }
  }

  snapshot(): Snapshot {
    return structuredClone({
      agents: this.#rows<Snapshot['agents'][number]>('agents'),
      proxies: this.#rows<Snapshot['proxies'][number]>('proxies'),
      uses: this.#rows<Snapshot['uses'][number]>('uses'),
      leases: this.#rows<Snapshot['leases'][number]>('leases'),
      cooldowns: this.#rows<Snapshot['cooldowns'][number]>('cooldowns'),
      tokenCeiling: this.#rows<number>('ceiling')[0] ?? 0,
    });
  }

  #rows<Row>(table: string): Row[] {
    return [...(this.#tables.get(table)?.values() ?? [])] as Row[];
  }
}

export class Ledger {
  nowMs = START_MS;
  book: Book;
  readonly store = new RowStore();
  readonly rules: Rules;
  /** Rows that the last mutation yielded. */
  changes: readonly Change[] = [];
  #ids = 0;
  readonly #seqs = new Map<string, number>();

  constructor(rules: Partial<Rules> = {}) {
    this.rules = { ...RULES, ...rules };
    this.book = new Book(this.rules, this.store.snapshot());
  }

  restart(): void {
    this.book = new Book(this.rules, this.store.snapshot());
  }

  advance(seconds: number): void {
    this.nowMs += seconds * 1000;
  }

  acquire(request: AcquireRequest = {}) {
    return this.#commit(this.book.acquire(request, `lease-${++this.#ids}`, this.nowMs));
  }

  /** A lease that must be granted. */
  granted(request: AcquireRequest = {}) {
    const result = this.acquire(request);
    if (!result.ok) throw new Error(`not granted: ${JSON.stringify(result)}`);
    return result.lease;
  }

  /** A refusal that must be `no_match`. */
  refused(request: AcquireRequest = {}) {
    const result = this.acquire(request);
    if (result.ok || result.code !== 'no_match') {
      throw new Error(`not refused: ${JSON.stringify(result)}`);
    }
    return result.noMatch;
  }

  get(id: string) {
    return this.book.lease(id, this.nowMs);
  }

  renew(id: string, ttlSeconds?: number) {
    return this.#commit(this.book.renew(id, ttlSeconds, this.nowMs));
  }

  release(id: string): void {
    this.#commit(this.book.release(id, this.nowMs));
  }

  report(id: string, report: ReportRequest) {
    return this.#commit(this.book.report(id, report, this.nowMs));
  }

  sync(cluster: string, request: Omit<Partial<SyncRequest>, 'kind'> & Pick<SyncRequest, 'kind'>) {
    const seq = request.seq ?? (this.#seqs.get(cluster) ?? 0) + 1;
    const whole = syncRequestSchema.parse({ term: 1, session: 's1', ...request, seq });
    const result = this.#commit(this.book.sync(cluster, whole, this.nowMs));
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

  sweep(rowsMax = 1_000): void {
    this.#commit(this.book.sweep(this.nowMs, rowsMax));
  }

  list() {
    return this.book.proxies({ selector: {}, limit: 1_000 }, this.nowMs);
  }

  #commit<Result>({ result, changes }: Mutation<Result>): Result {
    this.changes = changes;
    this.store.write(changes);
    return result;
  }
}

/** A ledger that knows of these proxies. */
export function ledgerOf(...entries: InventoryEntry[]): Ledger {
  const ledger = new Ledger();
  ledger.has(...entries);
  return ledger;
}
