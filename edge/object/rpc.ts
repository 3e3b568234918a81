/**
 * What may be asked of a shard's object, by the Worker and by the other shards. There is one
 * method, `call`, with the version of this page in every call: while a deployment is in progress an
 * old Worker meets a new object or the other way round, and each must be able to say so.
 *
 * Expected refusals travel as tagged results, because properties of a thrown error do not survive
 * the way. Every call can be repeated safely: a lease has its id from the caller.
 */
import type { AcquireCall, Client, FindCall, Idempotency } from '#edge/ledger/calls.ts';
import type { Position, ProxyPage, ProxyQuery } from '#edge/ledger/listing.ts';
import type { CooldownRow, Handover, Leftover } from '#edge/ledger/model.ts';
import type {
  AcquireResult,
  FindResult,
  LeaseResult,
  RenewResult,
  ReportResult,
  SyncResult,
} from '#edge/ledger/results.ts';
import type { ReportRequest, Stats } from '#shared/wire/lease.ts';
import type { InventoryEntry, SyncRequest } from '#shared/wire/sync.ts';

/** To be raised when a call or its result changes in a way that the other side must know of. */
export const RPC_VERSION = 1;

export interface SyncCall {
  readonly cluster: string;
  /** This shard's part of it. */
  readonly request: SyncRequest;
  /** Number of shards that the fleet is divided into. */
  readonly shards: number;
  /** After a change of that number: what other shards still hold of the proxies in this part. */
  readonly handover?: Handover | undefined;
}

/** The calls by name: what they take and what they answer. */
export interface LedgerCalls {
  acquire: { readonly args: AcquireCall; readonly result: AcquireResult };
  find: { readonly args: FindCall; readonly result: FindResult };
  lease: { readonly args: { readonly id: string }; readonly result: LeaseResult };
  renew: {
    readonly args: { readonly id: string; readonly ttlSeconds?: number | undefined };
    readonly result: RenewResult;
  };
  /**
   * Also takes a request out of the queue that waits under this id. `abandoned`: not by the holder
   * but for a request whose crawler has hung up or was answered by another shard; nothing happens
   * then when another request with the same idempotency key has got this lease or waits for it.
   */
  release: {
    readonly args: { readonly id: string; readonly abandoned?: true };
    readonly result: undefined;
  };
  /** The request with this id and idempotency key has its answer. See `AcquireCall.arbitrateMs`. */
  settle: {
    readonly args: { readonly key: string; readonly id: string };
    readonly result: undefined;
  };
  report: {
    readonly args: { readonly id: string; readonly report: ReportRequest };
    readonly result: ReportResult;
  };
  sync: { readonly args: SyncCall; readonly result: SyncResult };
  proxies: { readonly args: ProxyQuery; readonly result: ProxyPage };
  stats: { readonly args: undefined; readonly result: Stats };
  /**
   * Makes the shard give up what is not its own under the new number of shards: it grants no more
   * of it. Answers what it still holds.
   */
  reshape: {
    readonly args: { readonly cluster: string; readonly shards: number };
    readonly result: Leftover;
  };

  /** From shard to shard: how many leases are left on proxies that moved away, by UID. */
  held: {
    readonly args: {
      readonly cluster: string;
      /** The machines that the proxies stand for now; leases on earlier ones do not count. */
      readonly instances: Readonly<Record<string, string>>;
    };
    readonly result: Readonly<Record<string, number>>;
  };
  /** From shard to shard: what a proxy is now, for a lease that stayed behind. */
  entry: {
    readonly args: { readonly cluster: string; readonly uid: string };
    readonly result: InventoryEntry | undefined;
  };
  /** From shard to shard: cooldowns of addresses that began. */
  cool: { readonly args: readonly CooldownRow[]; readonly result: undefined };
  /** From shard to shard: an ended cooldown was answered by a success. */
  forgive: {
    readonly args: readonly {
      readonly egress: string;
      readonly target: string;
      readonly grantedMs: number;
    }[];
    readonly result: undefined;
  };
  /** From shard to shard: the cooldowns of these egresses. */
  cooldowns: { readonly args: readonly string[]; readonly result: readonly CooldownRow[] };
}

export type LedgerOp = keyof LedgerCalls;

export interface Call<Op extends LedgerOp = LedgerOp> {
  readonly version: number;
  readonly op: Op;
  /** Of the crawler that asks; absent when an agent or another shard does. */
  readonly client?: Client | undefined;
  readonly args: LedgerCalls[Op]['args'];
}

/** Refusals that every call may meet. */
export type Refusal =
  | { readonly code: 'unsupported_version' }
  | { readonly code: 'too_many_requests'; readonly retryAfterSeconds: number };

export type Reply<Op extends LedgerOp = LedgerOp> =
  | { readonly ok: true; readonly value: LedgerCalls[Op]['result'] }
  | { readonly ok: false; readonly refusal: Refusal };

export interface LedgerRpc {
  call<Op extends LedgerOp>(call: Call<Op>): Promise<Reply<Op>>;
}

/** The object as its stub has it: calls and replies travel as JSON, the cheapest to the runtime. */
export interface LedgerWire {
  call(text: string): Promise<string>;
}

/** The namespace of the ledger's objects, of which no more than this is used. */
export interface LedgerNamespace {
  getByName(name: string): LedgerWire;
}

/** A fresh stub of a shard's object; `shard-number.ts` reads the number out of its name. */
export function shardStub(namespace: LedgerNamespace, shard: number): LedgerRpc {
  return overWire(namespace.getByName(`ledger-${shard}`));
}

/** A stub as its callers see it. */
export function overWire(wire: LedgerWire): LedgerRpc {
  return { call: async (call) => JSON.parse(await wire.call(JSON.stringify(call))) };
}

export type {
  AcquireCall,
  AcquireResult,
  Client,
  CooldownRow,
  FindCall,
  FindResult,
  Handover,
  Idempotency,
  LeaseResult,
  Leftover,
  Position,
  ProxyPage,
  ProxyQuery,
  RenewResult,
  ReportResult,
  SyncResult,
};
