/**
 * What one request for a lease has asked of the shards so far. Every question goes under an id of
 * its own, so that whatever comes of it can be given back: a request whose crawler has hung up, or
 * that was answered by another shard, must leave neither a place in a queue nor a lease behind.
 */
import type { AcquireCall, Idempotency, LedgerCalls, LedgerOp } from '#edge/object/rpc.ts';
import type { AcquireRequest } from '#shared/wire/lease.ts';
import { type AcquireOutcome, type CallDeps, callShard, type Outcome } from './calls.ts';
import { type ClientLimits, clientAt } from './limits.ts';

export interface RouterDeps extends CallDeps {
  /** Number of shards that the fleet is divided into. */
  readonly shards: number;
  readonly limits: ClientLimits;
  /** 128 bits that nobody can guess, as text without a dot. */
  readonly randomToken: () => string;
}

/** Who asks, and how it can be told that it no longer does. */
export interface Caller {
  /** Name of the client. */
  readonly client: string;
  /** Aborts when the crawler hangs up. */
  readonly signal?: AbortSignal | undefined;
  /** Lets work go on that nobody waits for. */
  readonly waitUntil: (work: Promise<unknown>) => void;
}

export interface Ask {
  /** `target` is normalised. */
  readonly request: AcquireRequest;
  readonly idempotency?: Idempotency | undefined;
}

/** How long a shard waits for word of a request that went on to others, beyond its own waiting. */
const ARBITRATE_MS = 15_000;

/** With these the shard that decides about a key knows by itself that the request has ended. */
const ENDINGS = new Set(['idempotency_mismatch', 'ttl_too_long', 'too_many_requests']);

interface Times {
  readonly waitUntilMs?: number | undefined;
  readonly arbitrateMs?: number;
}

interface Pending {
  readonly shard: number;
  readonly leaseID: string;
  readonly outcome: Promise<AcquireOutcome>;
}

export class Attempts {
  readonly #deps: RouterDeps;
  readonly #ask: Ask;
  readonly #caller: Caller;
  readonly #pending = new Set<Pending>();
  /** Ids that were made for this request, with their shards. */
  readonly #made = new Map<string, number>();
  /** Where other requests with the idempotency key wait for this one, and under which id. */
  #arbiter: { readonly shard: number; readonly leaseID: string } | undefined;
  #isAbandoned = false;

  constructor(deps: RouterDeps, ask: Ask, caller: Caller) {
    this.#deps = deps;
    this.#ask = ask;
    this.#caller = caller;
  }

  /** Asks one shard for a lease; with a time to wait, until `waitUntilMs` of the monotonic clock. */
  async acquire(
    shard: number,
    place: AcquireCall['place'],
    waitUntilMs?: number,
  ): Promise<AcquireOutcome> {
    return this.#askUnder(`${shard}.${this.#deps.randomToken()}`, shard, place, { waitUntilMs });
  }

  /**
   * The same at the shard that decides about the idempotency key: other requests with the key wait
   * there until `settle`.
   */
  async arbitrate(shard: number, place: 'home' | 'note'): Promise<AcquireOutcome> {
    const leaseID = `${shard}.${this.#deps.randomToken()}`;
    this.#arbiter = { shard, leaseID };
    const waitMs = (this.#ask.request.waitSeconds ?? 0) * 1000;
    const times = { arbitrateMs: ARBITRATE_MS + waitMs };
    const outcome = await this.#askUnder(leaseID, shard, place, times);
    if (outcome.ok || ENDINGS.has(outcome.code)) this.#arbiter = undefined;
    return outcome;
  }

  /** The request has its answer: the next one with its idempotency key may begin. */
  settle(): void {
    const { idempotency } = this.#ask;
    if (this.#arbiter === undefined || idempotency === undefined) return;
    const { shard, leaseID } = this.#arbiter;
    const args = { key: idempotency.key, id: leaseID };
    this.#caller.waitUntil(callShard(this.#deps, shard, 'settle', args));
  }

  async #askUnder(
    leaseID: string,
    shard: number,
    place: AcquireCall['place'],
    times: Times,
  ): Promise<AcquireOutcome> {
    this.#made.set(leaseID, shard);
    const outcome = this.#send(leaseID, shard, place, times);
    const pending = { shard, leaseID, outcome };
    this.#pending.add(pending);
    try {
      const result = await outcome;
      if (!result.ok && result.code === 'overloaded' && 'uncertain' in result && result.uncertain) {
        this.#caller.waitUntil(this.#release(pending));
      }
      return result;
    } finally {
      this.#pending.delete(pending);
    }
  }

  call<Op extends LedgerOp>(
    shard: number,
    op: Op,
    args: LedgerCalls[Op]['args'],
  ): Promise<Outcome<LedgerCalls[Op]['result']>> {
    return callShard(this.#deps, shard, op, args, { client: this.#clientAt(shard) });
  }

  /** Nobody waits for an answer any more: no further shard needs to be asked. */
  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  /** Gives back a lease that was granted beside the one that is answered. */
  decline(outcome: AcquireOutcome): void {
    // After `abandon` that is done for whatever was open then.
    if (outcome.ok && !this.#isAbandoned) {
      this.#caller.waitUntil(this.giveBack(outcome.lease.leaseID));
    }
  }

  /** Gives back a lease, if it is one that was granted to this very request. */
  async giveBack(leaseID: string): Promise<void> {
    const shard = this.#made.get(leaseID);
    if (shard !== undefined) await this.#release({ shard, leaseID });
  }

  /** Gives back whatever comes of the questions that are still open. */
  abandon(): void {
    this.#isAbandoned = true;
    for (const pending of this.#pending) this.#caller.waitUntil(this.#giveUp(pending));
    this.#pending.clear();
  }

  async #send(
    leaseID: string,
    shard: number,
    place: AcquireCall['place'],
    { waitUntilMs, arbitrateMs }: Times,
  ): Promise<AcquireOutcome> {
    const { request, idempotency } = this.#ask;
    const args = (): AcquireCall => {
      const waitMs =
        waitUntilMs === undefined
          ? 0
          : Math.max(0, Math.ceil(waitUntilMs - this.#deps.clock.monotonicMs()));
      const call: AcquireCall = { leaseID, request, waitMs, idempotency, place };
      return arbitrateMs === undefined ? call : { ...call, arbitrateMs };
    };
    const first = args();
    const reply = await callShard(this.#deps, shard, 'acquire', first, {
      client: this.#clientAt(shard),
      // Who waits for another request with the key may wait as long as that one does.
      waitMs: Math.max(first.waitMs, (arbitrateMs ?? ARBITRATE_MS) - ARBITRATE_MS),
      again: args,
      signal: this.#caller.signal,
    });
    return reply.ok ? reply.value : reply;
  }

  async #giveUp(pending: Pending): Promise<void> {
    await this.#release(pending);
    // A release that overtook its request found nothing; the lease is granted only now.
    const late = await pending.outcome.catch(() => undefined);
    if (late?.ok === true) await this.giveBack(late.lease.leaseID);
  }

  async #release({ shard, leaseID }: Omit<Pending, 'outcome'>): Promise<void> {
    await callShard(this.#deps, shard, 'release', { id: leaseID, abandoned: true });
  }

  #clientAt(shard: number) {
    const { limits, shards } = this.#deps;
    return clientAt(limits, this.#caller.client, shard, shards);
  }
}
