/**
 * What the ledger remembers. Rows are what storage holds; every mutation of the book yields the
 * changes of rows that make it durable, and a book built from the rows equals the one that
 * wrote them.
 */
import type { InventoryEntry } from '#shared/wire/sync.ts';

/** Proxies that one shard takes; `docs/cost.md` has what they and their leases weigh. */
export const PROXIES_MAX = 30_000;
/** Length of all their entries together as JSON: some have many attributes, and memory is bounded. */
export const ENTRIES_LENGTH_MAX = 30_000_000;
/** Clusters that push their inventory to one ledger. */
export const CLUSTERS_MAX = 1_000;
/** Leases that a shard remembers at once, ended ones included. */
export const LEASES_MAX = 100_000;
/** Cooldowns that a shard remembers at once, ended ones included. */
export const COOLDOWNS_MAX = 100_000;
/** Sessions that a shard remembers at once; the one that was used longest ago goes. */
export const SESSIONS_MAX = 50_000;
/** Requests with an idempotency key that a shard remembers to have passed on. */
export const PASSED_MAX = 50_000;
/** Requests that wait at a shard at once. */
export const WAITING_MAX = 1_000;

/** Where the agent of a cluster stands. */
export interface AgentRow {
  readonly cluster: string;
  readonly term: number;
  /** null until a first full sync of a session has taken effect. */
  readonly session: string | null;
  /** Of the last sync of the session; 0 before its first. */
  readonly seq: number;
  /** `seq` of the last sync that could change the inventory. */
  readonly basis: number;
  readonly lastSyncMs: number;
  /** Number of shards that the inventory was divided among; 0 before the first full sync. */
  readonly shards: number;
  /** Number that it is being divided among anew; else the same. */
  readonly nextShards: number;
  /** The largest number that it was ever divided among: so many may still have leases. */
  readonly mostShards: number;
}

/** Leases that other shards still have on a proxy since it moved here. */
export interface Held {
  readonly shard: number;
  /** As last heard; the true number can only be lower. */
  readonly leases: number;
}

export interface ProxyRow {
  readonly cluster: string;
  readonly entry: InventoryEntry;
  readonly held: readonly Held[];
}

/**
 * A lease, in one of the slots of its proxy. A slot's row is written over by the next lease: the
 * row of a released one is not deleted, so that it tells when the proxy was last used, and that
 * tokens must be above its own.
 */
export interface LeaseRow {
  readonly cluster: string;
  readonly uid: string;
  readonly slot: number;
  readonly id: string;
  readonly token: number;
  /** Name of the client that holds it. */
  readonly client: string;
  /** The machine that was leased. */
  readonly instance: string;
  /** Where a late report goes once the machine is no longer there: its egress as last known. */
  readonly egress: string;
  /** Normalised; null when the crawler named none. */
  readonly target: string | null;
  /** Digests of the idempotency key and of what was asked for under it. */
  readonly idempotencyKey: string | null;
  readonly idempotencyBody: string | null;
  readonly ttlSeconds: number;
  readonly grantedMs: number;
  readonly expiresMs: number;
  /** `gone`: the proxy was removed or replaced while the lease was live. */
  readonly ended: 'no' | 'released' | 'gone';
}

export interface CooldownRow {
  /** See `egress.ts`. */
  readonly egress: string;
  /** Normalised, or `EVERY_TARGET`. */
  readonly target: string;
  /** Offences in a row; each doubles the length. */
  readonly strikes: number;
  readonly untilMs: number;
  /** The other shards have not all heard of it yet. */
  readonly pending: boolean;
}

/** Which proxy the requests of a session get. */
export interface SessionRow {
  /** The client's name and its key. */
  readonly key: string;
  readonly cluster: string;
  /** null: the session went on to another shard. */
  readonly uid: string | null;
  /** Of the lease that bound it. */
  readonly token: number;
}

/** A request with an idempotency key that went on to other shards. */
export interface PassedRow {
  readonly key: string;
  readonly untilMs: number;
}

/** Everything that storage holds. */
export interface Snapshot {
  readonly agents: readonly AgentRow[];
  readonly proxies: readonly ProxyRow[];
  readonly leases: readonly LeaseRow[];
  readonly cooldowns: readonly CooldownRow[];
  readonly sessions: readonly SessionRow[];
  readonly passed: readonly PassedRow[];
  /** Tokens are above this one and above those of all leases. */
  readonly tokenFloor: number;
}

/** One row to write or delete. */
export type Change =
  | { readonly kind: 'put-agent'; readonly row: AgentRow }
  | { readonly kind: 'put-proxy'; readonly row: ProxyRow }
  | { readonly kind: 'delete-proxy'; readonly cluster: string; readonly uid: string }
  | { readonly kind: 'put-lease'; readonly row: LeaseRow }
  | { readonly kind: 'release-lease'; readonly row: LeaseRow }
  | {
      readonly kind: 'delete-slots';
      readonly cluster: string;
      readonly uid: string;
      readonly slots: readonly number[];
    }
  /** Nothing is deleted when the slot has another lease by now. */
  | { readonly kind: 'delete-lease'; readonly row: LeaseRow }
  | { readonly kind: 'put-cooldown'; readonly row: CooldownRow }
  | { readonly kind: 'delete-cooldown'; readonly egress: string; readonly target: string }
  | { readonly kind: 'put-session'; readonly row: SessionRow }
  | { readonly kind: 'delete-session'; readonly key: string }
  | { readonly kind: 'put-passed'; readonly row: PassedRow }
  | { readonly kind: 'delete-passed'; readonly key: string }
  | { readonly kind: 'put-token-floor'; readonly value: number };

/** What a mutation answers, and the rows that must be written before anybody hears of it. */
export interface Mutation<Result> {
  readonly result: Result;
  readonly changes: readonly Change[];
}

/** A lease in the book. */
export interface Lease {
  row: LeaseRow;
  /** `live` until its time is over or its proxy is gone; ended ones only resolve reports. */
  state: 'live' | 'expired' | 'gone';
  /** Of a live lease. */
  proxy: ProxyRecord | undefined;
  /** Several requests with one idempotency key were answered with it. */
  isShared: boolean;
  /** Targets that an offence was reported for. */
  reported: Set<string> | undefined;
}

/** A proxy in the book. */
export interface ProxyRecord {
  readonly cluster: Cluster;
  entry: InventoryEntry;
  /** Of the entry as JSON. */
  length: number;
  /** See `egress.ts`; follows from the entry. */
  egresses: readonly string[];
  /** Live leases only. */
  readonly leases: Set<Lease>;
  held: readonly Held[];
  /** It belongs to another shard now; the leases that are left are all that it is here for. */
  leaving: boolean;
  /** Token of its last lease; 0 when never used. */
  usedToken: number;
  /** Slots that a lease can be written into, below `slots`, which is the first unused one. */
  freeSlots: number[];
  slots: number;
}

/** A cluster in the book. */
export interface Cluster {
  readonly name: string;
  agent: AgentRow;
  /** The agent was silent for too long to be believed. */
  stale: boolean;
  /** `lastSyncMs` of the row in storage; heartbeats move `agent` on without writing. */
  savedSyncMs: number;
  readonly proxies: Map<string, ProxyRecord>;
}

/** Live leases on a machine. */
export interface MachineLeases {
  readonly instance: string;
  readonly leases: number;
}

/** What a shard still holds of proxies that are no longer its own. */
export interface Leftover {
  /** By UID. */
  readonly leases: Readonly<Record<string, MachineLeases>>;
  /** No token of the shard is above this one. */
  readonly lastToken: number;
}

/** What other shards still hold of the proxies that a shard takes over. */
export interface Handover {
  readonly leftovers: readonly {
    readonly shard: number;
    readonly leases: Readonly<Record<string, MachineLeases>>;
  }[];
  /** Tokens must be above this one. */
  readonly tokenFloor: number;
}

/** Leases that count against the capacity of a proxy, those that other shards still have too. */
export function loadOf(proxy: ProxyRecord): number {
  let load = proxy.leases.size;
  for (const { leases } of proxy.held) load += leases;
  return load;
}
