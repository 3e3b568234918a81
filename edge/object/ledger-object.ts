/**
 * The Durable Object around the book. Storage is the truth; the book in memory is a copy that an
 * eviction may drop at any moment and the constructor builds again. Each call takes the time once,
 * asks the book, and writes the rows that it yields in one synchronous transaction; the runtime
 * holds the reply back until they are durable.
 *
 * The alarm deletes rows of what is long over. Nothing depends on it: a late, doubled or lost one
 * only leaves rows lying.
 */
import { DurableObject } from 'cloudflare:workers';
import { Book } from '#edge/ledger/book.ts';
import type { Mutation } from '#edge/ledger/model.ts';
import { type Rules, rulesSchema } from '#edge/ledger/rules.ts';
import { systemClock } from '#shared/clock.ts';
import type { AcquireRequest, ReportRequest } from '#shared/wire/lease.ts';
import type { SyncRequest } from '#shared/wire/sync.ts';
import { migrate } from './migrations.ts';
import type { LedgerRpc, ProxyQuery } from './rpc.ts';
import { readSnapshot, writeChange } from './statements.ts';

/** Rows that one run of the alarm deletes. */
const SWEEP_ROWS_MAX = 1_000;
/** Time between two runs of the alarm, so that each finds more than one row. */
const SWEEP_INTERVAL_MS = 60_000;
/** 128 random bits in base64url; no character of it is a dot, which a prefix may end with. */
const LEASE_ID_BYTES = 16;

export class LedgerObject extends DurableObject implements LedgerRpc {
  readonly #storage: DurableObjectStorage;
  readonly #rules: Rules;
  #book: Book;
  /** When the alarm is set for; undefined while it is not. */
  #alarmMs: number | undefined;

  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(ctx, env);
    this.#storage = ctx.storage;
    this.#rules = rulesSchema.parse(env);
    migrate(ctx.storage, systemClock.now());
    this.#book = this.#rebuild();
    ctx.blockConcurrencyWhile(async () => {
      this.#alarmMs = (await ctx.storage.getAlarm()) ?? undefined;
    });
  }

  async acquire(request: AcquireRequest) {
    return this.#mutate((book, nowMs) => book.acquire(request, newLeaseID(), nowMs));
  }

  async lease(id: string) {
    return this.#book.lease(id, systemClock.now());
  }

  async renew(id: string, ttlSeconds: number | undefined) {
    return this.#mutate((book, nowMs) => book.renew(id, ttlSeconds, nowMs));
  }

  async release(id: string) {
    return this.#mutate((book, nowMs) => book.release(id, nowMs));
  }

  async report(id: string, report: ReportRequest) {
    return this.#mutate((book, nowMs) => book.report(id, report, nowMs));
  }

  async sync(cluster: string, request: SyncRequest) {
    return this.#mutate((book, nowMs) => book.sync(cluster, request, nowMs));
  }

  async proxies(query: ProxyQuery) {
    return this.#book.proxies(query, systemClock.now());
  }

  async stats() {
    return this.#book.stats(systemClock.now());
  }

  /** Deletes what is due and comes again; what fails now is due the next time as well. */
  override async alarm(): Promise<void> {
    this.#alarmMs = undefined;
    try {
      this.#mutate((book, nowMs) => book.sweep(nowMs, SWEEP_ROWS_MAX));
    } catch (error) {
      const cause = error instanceof Error ? error.message : String(error);
      console.error(JSON.stringify({ level: 'error', msg: 'sweep failed', cause }));
      this.#setAlarm(systemClock.now() + SWEEP_INTERVAL_MS);
    }
  }

  #mutate<Result>(work: (book: Book, nowMs: number) => Mutation<Result>): Result {
    const nowMs = systemClock.now();
    try {
      const { result, changes } = work(this.#book, nowMs);
      if (changes.length > 0) {
        this.#storage.transactionSync(() => {
          for (const change of changes) writeChange(this.#storage.sql, change);
        });
      }
      this.#armAlarm(nowMs);
      return result;
    } catch (error) {
      // The book is ahead of storage, or in an unknown state: only storage can be believed.
      this.#book = this.#rebuild();
      throw error;
    }
  }

  #rebuild(): Book {
    return new Book(this.#rules, readSnapshot(this.#storage.sql));
  }

  /** Setting an alarm costs a written row, so it is done only when it has to come earlier. */
  #armAlarm(nowMs: number): void {
    const dueMs = this.#book.nextSweepMs;
    if (dueMs === undefined) return;
    const wantedMs = Math.max(dueMs, nowMs + SWEEP_INTERVAL_MS);
    if (this.#alarmMs === undefined || wantedMs < this.#alarmMs) this.#setAlarm(wantedMs);
  }

  #setAlarm(atMs: number): void {
    this.#alarmMs = atMs;
    void this.#storage.setAlarm(atMs);
  }
}

function newLeaseID(): string {
  return crypto
    .getRandomValues(new Uint8Array(LEASE_ID_BYTES))
    .toBase64({ alphabet: 'base64url', omitPadding: true });
}
