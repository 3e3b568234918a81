/**
 * The Durable Object of one shard, around its book. Storage is the truth; the book in memory is a
 * copy that an eviction may drop at any moment and the constructor builds again. Each call takes
 * the time once, asks the book, and is answered when the rows that the book yielded are written,
 * in one transaction with those of the calls that arrived together; the runtime holds the reply
 * back until they are durable.
 *
 * The alarm deletes rows of what is long over. Nothing depends on it: a late, doubled or lost one
 * only leaves rows lying.
 */
import { DurableObject } from 'cloudflare:workers';
import { Book } from '#edge/ledger/book.ts';
import type { AcquireCall, Client } from '#edge/ledger/calls.ts';
import type { Change, Mutation } from '#edge/ledger/model.ts';
import type { AcquireResult } from '#edge/ledger/results.ts';
import { type Rules, rulesSchema } from '#edge/ledger/rules.ts';
import { systemClock, type Timer } from '#shared/clock.ts';
import { GroupCommit } from './group-commit.ts';
import { KeyLocks } from './key-locks.ts';
import { migrate } from './migrations.ts';
import { Peers } from './peers.ts';
import { readSnapshot } from './rows.ts';
import {
  type Call,
  type LedgerCalls,
  type LedgerNamespace,
  type LedgerOp,
  type LedgerWire,
  type Reply,
  RPC_VERSION,
  type SyncCall,
  shardStub,
} from './rpc.ts';
import { shardNumber } from './shard-number.ts';
import { writeChange } from './statements.ts';

/** Rows that one run of the alarm deletes. */
const SWEEP_ROWS_MAX = 1_000;
/** Time between two runs of the alarm, so that each finds more than one row. */
const SWEEP_INTERVAL_MS = 60_000;
/** When a shard that died with news for others is woken, if nothing wakes it before. */
const PUSH_AGAIN_MS = 500;

interface LedgerEnv {
  readonly LEDGER: LedgerNamespace;
}

type Handlers = {
  readonly [Op in LedgerOp]: (
    args: LedgerCalls[Op]['args'],
    client: Client,
  ) => Promise<LedgerCalls[Op]['result']>;
};

type Work<Result> = (book: Book, nowMs: number) => Mutation<Result>;

/** Who no crawler asks for: an agent, another shard. */
const NOBODY: Client = { name: '' };

export class LedgerObject extends DurableObject<LedgerEnv> implements LedgerWire {
  readonly #storage: DurableObjectStorage;
  readonly #rules: Rules;
  readonly #shard: number;
  readonly #commits: GroupCommit;
  readonly #peers: Peers;
  readonly #handlers: Handlers;
  readonly #locks = new KeyLocks(systemClock);
  /** Requests in the queue, by the id that each was made with. */
  readonly #queued = new Map<string, PromiseWithResolvers<AcquireResult>>();
  #book: Book;
  /** When the alarm is set for; undefined while it is not. */
  #alarmMs: number | undefined;
  #tick: { readonly timer: Timer; readonly atMs: number } | undefined;

  constructor(ctx: DurableObjectState, env: LedgerEnv) {
    super(ctx, env);
    this.#storage = ctx.storage;
    this.#rules = rulesSchema.parse(env);
    migrate(ctx.storage, systemClock.now());
    this.#shard = shardNumber(ctx);
    this.#book = this.#rebuild();
    this.#commits = new GroupCommit({
      clock: systemClock,
      write: (changes) => this.#write(changes),
      rollBack: () => {
        // The book is ahead of storage: only storage can be believed.
        this.#book = this.#rebuild(this.#book);
        this.#armTick(systemClock.now());
      },
      written: (changes) => this.#tellPeers(changes),
    });
    this.#peers = new Peers({
      clock: systemClock,
      stubOf: (shard) => shardStub(env.LEDGER, shard),
      pending: () => this.#book.pendingCooldowns(),
      others: () => this.#others(this.#book.shards),
      shared: async (rows) => this.#mutate((book, nowMs) => book.cooldownsShared(rows, nowMs)),
    });
    this.#handlers = this.#handle();
    ctx.blockConcurrencyWhile(async () => {
      this.#alarmMs = (await ctx.storage.getAlarm()) ?? undefined;
    });
    if (this.#book.hasPendingCooldowns) ctx.waitUntil(this.#peers.push());
  }

  async call(text: string): Promise<string> {
    return JSON.stringify(await this.#answer(JSON.parse(text)));
  }

  async #answer<Op extends LedgerOp>(call: Call<Op>): Promise<Reply<Op>> {
    if (call.version !== RPC_VERSION || !Object.hasOwn(this.#handlers, call.op)) {
      return { ok: false, refusal: { code: 'unsupported_version' } };
    }
    const { op, args, client = NOBODY } = call;
    const retryAfterSeconds = isCounted(call)
      ? this.#book.clients.admit(client.name, client.perSecondMax, systemClock.now())
      : undefined;
    if (retryAfterSeconds !== undefined) {
      return { ok: false, refusal: { code: 'too_many_requests', retryAfterSeconds } };
    }
    const handler: Handlers[Op] = this.#handlers[op];
    return { ok: true, value: await handler(args, client) };
  }

  /** Deletes what is due and comes again; what fails now is due the next time as well. */
  override async alarm(): Promise<void> {
    this.#alarmMs = undefined;
    try {
      await this.#mutate((book, nowMs) => book.sweep(nowMs, SWEEP_ROWS_MAX));
      if (this.#book.hasPendingCooldowns) await this.#peers.push();
      this.#armAlarm(systemClock.now());
    } catch (error) {
      logError('sweep failed', error);
      this.#setAlarm(systemClock.now() + SWEEP_INTERVAL_MS);
    }
  }

  #handle(): Handlers {
    return {
      acquire: (call, client) => this.#arbitrate(call, client),
      settle: async ({ key, id }) => {
        this.#locks.release(key, id);
        return undefined;
      },
      find: (call) => this.#look((book, nowMs) => book.find(call, nowMs)),
      lease: ({ id }) => this.#look((book, nowMs) => book.lease(id, nowMs)),
      renew: async ({ id, ttlSeconds }) => {
        await this.#follow(id);
        return this.#mutate((book, nowMs) => book.renew(id, ttlSeconds, nowMs));
      },
      release: ({ id, abandoned = false }) =>
        this.#mutate((book, nowMs) => book.release(id, abandoned, nowMs)),
      report: async ({ id, report }) => {
        // Without an answer the report counts for what the proxy was when it was last seen here.
        await this.#follow(id).catch((error: unknown) => logError('where is its proxy?', error));
        return this.#mutate((book, nowMs) => book.report(id, report, nowMs));
      },
      sync: (call) => this.#sync(call),
      proxies: (query) => this.#look((book, nowMs) => book.proxies(query, nowMs)),
      stats: () => this.#look((book, nowMs) => book.stats(nowMs)),
      reshape: ({ cluster, shards }) =>
        this.#mutate((book, nowMs) => book.reshape(cluster, shards, nowMs)),
      held: ({ cluster, instances }) =>
        this.#look((book, nowMs) => book.held(cluster, instances, nowMs)),
      entry: ({ cluster, uid }) => this.#look((book) => book.entry(cluster, uid)),
      cool: (rows) => this.#mutate((book, nowMs) => book.cool(rows, nowMs)),
      forgive: (successes) => this.#mutate((book, nowMs) => book.forgive(successes, nowMs)),
      cooldowns: (egresses) => this.#look((book, nowMs) => book.cooldownsOf(egresses, nowMs)),
    };
  }

  /** Of requests with one idempotency key the next begins when the one before has ended. */
  async #arbitrate(call: AcquireCall, client: Client): Promise<AcquireResult> {
    const { idempotency, arbitrateMs, leaseID } = call;
    if (idempotency === undefined || arbitrateMs === undefined) return this.#acquire(call, client);
    const { key } = idempotency;
    await this.#locks.take(key, leaseID, arbitrateMs);
    try {
      const result = await this.#acquire(call, client);
      // Otherwise it goes on to other shards, and says itself when it has ended.
      if (result.ok || ENDINGS.has(result.code)) this.#locks.release(key, leaseID);
      return result;
    } catch (error) {
      this.#locks.release(key, leaseID);
      throw error;
    }
  }

  async #acquire(call: AcquireCall, client: Client): Promise<AcquireResult> {
    const { leaseID } = call;
    const { result, written } = this.#apply((book, nowMs) => {
      const mutation = book.acquire(call, client, nowMs);
      // Before anything else happens: the queue may be served by this very call.
      if (mutation.result === undefined && !this.#queued.has(leaseID)) {
        this.#queued.set(leaseID, Promise.withResolvers());
      }
      return mutation;
    });
    const queued = this.#queued.get(leaseID);
    if (result === undefined && queued !== undefined) return queued.promise;
    await written;
    return result ?? { ok: false, code: 'cancelled' };
  }

  /** Brings a sync in, after asking the other shards what they know of egresses new to this one. */
  async #sync({ cluster, request, shards, handover }: SyncCall) {
    const others = this.#others(shards);
    for (const { shard } of handover?.leftovers ?? []) {
      if (!others.includes(shard) && shard !== this.#shard) others.push(shard);
    }
    const unknown = others.length === 0 ? [] : this.#book.unknownEgresses(cluster, request.upserts);
    if (unknown.length > 0) {
      this.#book.watch(cluster, unknown);
      const rows = await this.#peers.cooldownsOf(unknown, others);
      await this.#mutate((book, nowMs) => book.cool(rows, nowMs));
    }
    const part = { request, shards, handover };
    const result = await this.#mutate((book, nowMs) => book.sync(cluster, part, nowMs));
    if (result.ok) this.ctx.waitUntil(this.#refreshHeld(cluster));
    return result;
  }

  /** Of a lease whose proxy moved to another shard: is it still there, and what is it now? */
  async #follow(id: string): Promise<void> {
    const strayed = this.#book.strayed(id);
    if (strayed === undefined) return;
    const { cluster, uid, shard } = strayed;
    const entry = await this.#peers.ask(shard, 'entry', { cluster, uid });
    await this.#mutate((book, nowMs) => book.follow(cluster, uid, entry, nowMs));
  }

  /** Asks other shards how many leases they still have on proxies that moved here. */
  async #refreshHeld(cluster: string): Promise<void> {
    for (const [shard, instances] of this.#book.heldElsewhere(cluster)) {
      try {
        const counts = await this.#peers.ask(shard, 'held', { cluster, instances });
        await this.#mutate((book, nowMs) => book.setHeld(cluster, shard, counts, nowMs));
      } catch (error) {
        logError('leases left in another shard are not known', error);
      }
    }
  }

  #others(shards: number): number[] {
    return Array.from({ length: shards }, (_, shard) => shard).filter(
      (shard) => shard !== this.#shard,
    );
  }

  async #look<Result>(look: (book: Book, nowMs: number) => Result): Promise<Result> {
    const result = look(this.#book, systemClock.now());
    await this.#commits.settled();
    return result;
  }

  /** Resolves when what the work changed is written. */
  async #mutate<Result>(work: Work<Result>): Promise<Result> {
    const { result, written } = this.#apply(work);
    await written;
    return result;
  }

  /** `written` also rejects when nothing of it could be written; the book is as before then. */
  #apply<Result>(work: Work<Result>): { result: Result; written: Promise<void> } {
    const nowMs = systemClock.now();
    const { result, changes } = this.#attempt(work, nowMs);
    const settled = this.#book.takeSettled();
    const written = this.#commits.add(changes);
    for (const { id, result: answer } of settled) {
      const queued = this.#queued.get(id);
      this.#queued.delete(id);
      if (queued !== undefined) written.then(() => queued.resolve(answer), queued.reject);
    }
    this.#armTick(nowMs);
    return { result, written };
  }

  #attempt<Result>(work: Work<Result>, nowMs: number): Mutation<Result> {
    try {
      return work(this.#book, nowMs);
    } catch (error) {
      // The book is in an unknown state; what others did before is sound, and is written first.
      this.#commits.flush();
      this.#book = this.#rebuild(this.#book);
      throw error;
    }
  }

  #write(changes: readonly Change[]): void {
    this.#storage.transactionSync(() => {
      for (const change of changes) writeChange(this.#storage.sql, change);
    });
    this.#armAlarm(systemClock.now());
  }

  #rebuild(before?: Book): Book {
    const { waiting, clients } = before ?? {};
    const options = {
      rules: this.#rules,
      shard: this.#shard,
      ...(waiting === undefined ? {} : { waiting }),
      ...(clients === undefined ? {} : { clients }),
    };
    return new Book(options, readSnapshot(this.#storage.sql));
  }

  #tellPeers(changes: readonly Change[]): void {
    const isNews = changes.some((change) => change.kind === 'put-cooldown' && change.row.pending);
    if (isNews) this.ctx.waitUntil(this.#peers.push());
    const successes = this.#book.takeForgiven();
    if (successes.length > 0) this.ctx.waitUntil(this.#peers.forgive(successes));
  }

  /** Serves those who wait when time alone frees a proxy, or has run out for one of them. */
  #armTick(nowMs: number): void {
    const atMs = this.#book.nextTickMs;
    if (this.#tick?.atMs === atMs) return;
    this.#tick?.timer.cancel();
    this.#tick = undefined;
    if (atMs === undefined) return;
    const timer = systemClock.setTimer(() => {
      this.#tick = undefined;
      this.#mutate((book, now) => book.tick(now)).catch((error: unknown) =>
        logError('serving the queue failed', error),
      );
    }, atMs - nowMs);
    this.#tick = { timer, atMs };
  }

  /** Setting an alarm costs a written row, so it is done only when it has to come earlier. */
  #armAlarm(nowMs: number): void {
    const dueMs = this.#book.nextSweepMs;
    if (dueMs === undefined && !this.#book.hasPendingCooldowns) return;
    const wantedMs = this.#book.hasPendingCooldowns
      ? nowMs + PUSH_AGAIN_MS
      : Math.max(dueMs ?? 0, nowMs + SWEEP_INTERVAL_MS);
    if (this.#alarmMs === undefined || wantedMs < this.#alarmMs) this.#setAlarm(wantedMs);
  }

  #setAlarm(atMs: number): void {
    this.#alarmMs = atMs;
    void this.#storage.setAlarm(atMs);
  }
}

/** Refusals that no other shard is asked after. */
const ENDINGS: ReadonlySet<string> = new Set(['idempotency_mismatch', 'ttl_too_long']);

/** Places that a request for a lease passes just once. */
const COUNTED: ReadonlySet<AcquireCall['place']> = new Set(['first', 'home']);

/** A release is always taken; a request that goes on to further shards was counted at the first. */
function isCounted({ op, args, client }: Call): boolean {
  if (client?.perSecondMax === undefined || op === 'release') return false;
  return !(op === 'acquire' && args !== undefined && 'place' in args && !COUNTED.has(args.place));
}

function logError(msg: string, error: unknown): void {
  const cause = error instanceof Error ? error.message : String(error);
  console.error(JSON.stringify({ level: 'error', msg, cause }));
}
