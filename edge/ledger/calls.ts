/** What is asked of a shard on behalf of a crawler that wants a proxy. */
import type { AcquireRequest } from '#shared/wire/lease.ts';

/** Who calls on behalf of a crawler, and this shard's share of what it may have. */
export interface Client {
  readonly name: string;
  /** Leases held at once; absent: any number. */
  readonly leasesMax?: number;
  /** Requests per second; may be a fraction. Absent: any number. */
  readonly perSecondMax?: number;
}

export interface AcquireCall {
  /** Chosen by the caller, unguessable, and names the shard: `<shard>.<random>`. */
  readonly leaseID: string;
  /** `target` is normalised; `waitSeconds` is not looked at. */
  readonly request: AcquireRequest;
  /** How long to queue when nothing is free; 0 answers at once. */
  readonly waitMs: number;
  readonly idempotency?: Idempotency | undefined;
  /**
   * `first`: the first shard that is asked. `home`: the same, for a request with an idempotency or
   * session key while there are several shards; when it cannot grant, it remembers (before it
   * answers) that others were asked, and then answers `passed_on` until a `further` call.
   * `further`: the other shards, and home again after `passed_on`.
   * `note`: the home of the idempotency key of a request whose session has another home; it grants
   * nothing but remembers, as `home` does, that the request went on, and answers `noted`.
   */
  readonly place: 'first' | 'home' | 'further' | 'note';
  /**
   * Asks the shard that the idempotency key hashes to: it decides about the key alone, so that of
   * requests with one key the next begins when this one has ended. Unless it grants, the caller
   * tells with `settle` that it has; for so long it is waited for at most.
   */
  readonly arbitrateMs?: number;
}

export interface Idempotency {
  /** Digest of the client's name and its key. */
  readonly key: string;
  /** Digest of what was asked for. */
  readonly body: string;
}

/** Looks whether the shard has a lease of this key, or a proxy bound to this session. */
export interface FindCall {
  readonly idempotency?: Idempotency | undefined;
  readonly client: string;
  readonly request: AcquireRequest;
}
