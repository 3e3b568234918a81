/** A book with a fleet in it, of which part is used and part cools down for the one target. */
import { Book } from '#edge/ledger/book.ts';
import { egressesOf } from '#edge/ledger/egress.ts';
import type { CooldownRow, Snapshot } from '#edge/ledger/model.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';

export const TARGET = 'shop.example';
export const START_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 24 * 60 * 60 * 1000;
const CLUSTER = 'bench';
const CLIENT = { name: 'bench' };

const RULES = {
  defaultTtlSeconds: 3_600,
  maxTtlSeconds: 86_400,
  cooldownMs: 300_000,
  maxCooldownMs: DAY_MS,
  agentStaleMs: DAY_MS,
};

export class BenchBook {
  readonly #book: Book;
  readonly #held: string[] = [];
  #ids = 0;

  /** `cools` says of which proxies, by number. */
  constructor(entries: readonly InventoryEntry[], cools: (index: number) => boolean) {
    const cooldowns = entries.filter((_, index) => cools(index)).map(cooldownOf);
    const agent = {
      cluster: CLUSTER,
      term: 1,
      session: 'bench',
      seq: 1,
      basis: 1,
      lastSyncMs: START_MS,
      shards: 1,
      nextShards: 1,
      mostShards: 1,
    };
    const snapshot: Snapshot = {
      agents: [agent],
      proxies: entries.map((entry) => ({ cluster: CLUSTER, entry, held: [] })),
      cooldowns,
      leases: [],
      sessions: [],
      passed: [],
      tokenFloor: 0,
    };
    this.#book = new Book({ rules: RULES, shard: 0 }, snapshot);
  }

  /** True when granted; the lease is held until `release` comes to it. */
  acquire(nowMs: number, target: string | undefined): boolean {
    const leaseID = `0.${++this.#ids}`;
    const request = target === undefined ? {} : { target };
    const call = { leaseID, request, waitMs: 0, place: 'first' } as const;
    const { result } = this.#book.acquire(call, CLIENT, nowMs);
    if (result?.ok !== true) return false;
    this.#held.push(leaseID);
    return true;
  }

  /** Ends the lease before the last `behind` ones. */
  release(nowMs: number, behind: number): void {
    const [id] = this.#held.splice(-behind - 1, 1);
    if (id !== undefined) this.#book.release(id, false, nowMs);
  }
}

function cooldownOf(entry: InventoryEntry): CooldownRow {
  const [egress = ''] = egressesOf(CLUSTER, entry);
  const untilMs = START_MS + DAY_MS;
  return { egress, target: TARGET, strikes: 1, untilMs, pending: false };
}
