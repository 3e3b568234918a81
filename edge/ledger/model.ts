/**
 * What the ledger remembers. Rows are what storage holds; every mutation of the book yields the
 * changes of rows that make it durable, and a book built from the rows equals the one that
 * wrote them.
 */
import type { InventoryEntry } from '#shared/wire/sync.ts';

/** Proxies that one ledger takes; about 1 kB each of the object's 128 MB with indexes. */
export const PROXIES_MAX = 25_000;
/** Clusters that push their inventory to one ledger. */
export const CLUSTERS_MAX = 1_000;
/** Leases that are remembered at once, ended ones included. */
export const LEASES_MAX = 100_000;
/** Cooldowns that are remembered at once, ended ones included. */
export const COOLDOWNS_MAX = 100_000;

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
}

export interface ProxyRow {
  readonly cluster: string;
  readonly entry: InventoryEntry;
}

/** When a proxy was last handed out under `spread`, as the fencing token of that grant. */
export interface UseRow {
  readonly cluster: string;
  readonly uid: string;
  readonly token: number;
}

export interface LeaseRow {
  readonly id: string;
  readonly token: number;
  readonly cluster: string;
  readonly uid: string;
  /** The machine that was leased. */
  readonly instance: string;
  /** Where a late report goes once the machine is no longer there: its egress as last known. */
  readonly egress: string;
  /** Normalised; null when the crawler named none. */
  readonly target: string | null;
  readonly ttlSeconds: number;
  readonly grantedMs: number;
  readonly expiresMs: number;
  /** The proxy was removed or replaced while the lease was live. */
  readonly gone: boolean;
}

export interface CooldownRow {
  /** See `egress.ts`. */
  readonly egress: string;
  /** Normalised, or `EVERY_TARGET`. */
  readonly target: string;
  /** Offences in a row; each doubles the length. */
  readonly strikes: number;
  readonly untilMs: number;
}

/** Everything that storage holds. */
export interface Snapshot {
  readonly agents: readonly AgentRow[];
  readonly proxies: readonly ProxyRow[];
  readonly uses: readonly UseRow[];
  readonly leases: readonly LeaseRow[];
  readonly cooldowns: readonly CooldownRow[];
  /** No token above this one was ever handed out. */
  readonly tokenCeiling: number;
}

/** One row to write or delete. */
export type Change =
  | { readonly kind: 'put-agent'; readonly row: AgentRow }
  | { readonly kind: 'put-proxy'; readonly row: ProxyRow }
  | { readonly kind: 'delete-proxy'; readonly cluster: string; readonly uid: string }
  | { readonly kind: 'put-use'; readonly row: UseRow }
  | { readonly kind: 'put-lease'; readonly row: LeaseRow }
  | { readonly kind: 'delete-lease'; readonly id: string }
  | { readonly kind: 'put-cooldown'; readonly row: CooldownRow }
  | { readonly kind: 'delete-cooldown'; readonly egress: string; readonly target: string }
  | { readonly kind: 'put-token-ceiling'; readonly value: number };

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
}

/** A proxy in the book. */
export interface ProxyRecord {
  readonly cluster: Cluster;
  entry: InventoryEntry;
  /** Live leases only. */
  readonly leases: Set<Lease>;
  /** Token of its last grant, as far as it is known; 0 when never used. */
  usedToken: number;
}

/** A cluster in the book. */
export interface Cluster {
  readonly name: string;
  agent: AgentRow;
  /** `lastSyncMs` of the row in storage; heartbeats move `agent` on without writing. */
  savedSyncMs: number;
  readonly proxies: Map<string, ProxyRecord>;
}
