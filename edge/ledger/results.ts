/** What the ledger answers. Refusals that are expected are tagged values, never thrown. */
import type { NoMatch } from '#shared/wire/errors.ts';
import type { Lease as LeaseView } from '#shared/wire/lease.ts';
import type { SyncResponse } from '#shared/wire/sync.ts';

interface Refused<Code extends string> {
  readonly ok: false;
  readonly code: Code;
}

export type LeaseRefusal = Refused<'unknown_lease' | 'lease_expired' | 'proxy_gone'>;
export type TtlRefusal = Refused<'ttl_too_long'> & { readonly maxTtlSeconds: number };
/** Something that is bounded is full, or cannot be told for the moment. */
export type Overload = Refused<'overloaded'> & { readonly reason: string };
export type NoMatchRefusal = Refused<'no_match'> & {
  readonly noMatch: NoMatch;
  /** Proxies that match but are cordoned or draining; they are not considered. */
  readonly withheld: number;
};

export type AcquireRefusal =
  | NoMatchRefusal
  | TtlRefusal
  | Overload
  | (Refused<'queue_full'> & { readonly retryAfterSeconds: number })
  /** The client holds as many leases as it may; `retryAfterSeconds`: when the first one expires. */
  | (Refused<'too_many_leases'> & { readonly retryAfterSeconds?: number })
  /** A live lease of the same key was asked for with another body. */
  | Refused<'idempotency_mismatch'>
  /** An earlier request with the same key went on to other shards; see `AcquireCall.place`. */
  | Refused<'passed_on'>
  /** See `AcquireCall.place`. */
  | Refused<'noted'>
  /** Released while it waited in the queue. */
  | Refused<'cancelled'>;

export type AcquireResult = { readonly ok: true; readonly lease: LeaseView } | AcquireRefusal;
export type LeaseResult = { readonly ok: true; readonly lease: LeaseView } | LeaseRefusal;
export type RenewResult = LeaseResult | TtlRefusal | Overload;
export type ReportResult = { readonly ok: true } | LeaseRefusal | Overload;

export interface FindResult {
  /** The live lease of the idempotency key. */
  readonly lease?: LeaseView;
  /** Its body was another one. */
  readonly mismatch?: true;
  /** The session is bound to a proxy here that can be had now, since the lease of this token. */
  readonly boundToken?: number;
}

export type SyncRefusal =
  /** A newer leader has spoken: its term. */
  | (Refused<'stale_term'> & { readonly term: number })
  | (Refused<'resync_required'> & { readonly reason: string })
  | (Refused<'inventory_full'> & { readonly reason: string })
  /** The fleet is divided anew; `from` shards may have leases of it: `reshape` them all first. */
  | (Refused<'reshape'> & { readonly from: number });

export type SyncResult =
  | {
      readonly ok: true;
      readonly response: SyncResponse;
      /** Of shard 0: every shard should hear of the cluster now, concerned or not. */
      readonly beat: boolean;
    }
  | SyncRefusal;
