/**
 * The other shards, as one of them sees them. Cooldowns of an address must reach every proxy behind
 * it, in whatever shard: a shard pushes those that begin with it, again and again until all have
 * heard, and a shard asks the others about addresses that are new to it before it offers a proxy
 * behind one.
 */
import type { CooldownRow } from '#edge/ledger/model.ts';
import type { Clock } from '#shared/clock.ts';
import { type LedgerCalls, type LedgerOp, type LedgerRpc, RPC_VERSION } from './rpc.ts';

/** Longest time of one call. */
const CALL_MS_MAX = 5_000;
/** Pause after a push that did not reach all: doubles from the first to the second. */
const RETRY_MS = { first: 100, most: 1_000 };

export interface PeersDeps {
  readonly clock: Clock;
  /** A fresh stub of the object with this name. */
  readonly stubOf: (shard: number) => LedgerRpc;
  /** Cooldowns that not all have heard of. */
  readonly pending: () => readonly CooldownRow[];
  /** The shards that must hear of them. */
  readonly others: () => readonly number[];
  /** All have heard of these. */
  readonly shared: (rows: readonly CooldownRow[]) => Promise<void>;
}

export class Peers {
  readonly #deps: PeersDeps;
  #pushing: Promise<void> | undefined;

  constructor(deps: PeersDeps) {
    this.#deps = deps;
  }

  /** Asks another shard; rejects when it does not answer in time, or cannot understand. */
  async ask<Op extends LedgerOp>(
    shard: number,
    op: Op,
    args: LedgerCalls[Op]['args'],
  ): Promise<LedgerCalls[Op]['result']> {
    const { clock, stubOf } = this.#deps;
    const late = Promise.withResolvers<never>();
    const timer = clock.setTimer(
      () => late.reject(new Error(`shard ${shard} did not answer ${op}`)),
      CALL_MS_MAX,
    );
    try {
      const call = stubOf(shard).call({ version: RPC_VERSION, op, args });
      const reply = await Promise.race([call, late.promise]);
      if (!reply.ok) throw new Error(`shard ${shard} refused ${op}: ${reply.refusal.code}`);
      return reply.value;
    } finally {
      timer.cancel();
    }
  }

  /** What the shards know of the cooldowns of these egresses. */
  async cooldownsOf(egresses: readonly string[], shards: readonly number[]) {
    const rows = await Promise.all(shards.map((shard) => this.ask(shard, 'cooldowns', egresses)));
    return rows.flat();
  }

  /** Tells all others of a success, once: whoever misses it keeps a doubled length at worst. */
  async forgive(successes: LedgerCalls['forgive']['args']): Promise<void> {
    const others = this.#deps.others();
    await Promise.allSettled(others.map((shard) => this.ask(shard, 'forgive', successes)));
  }

  /** Pushes what is pending until nothing is. Resolves then; a second call joins the first. */
  push(): Promise<void> {
    this.#pushing ??= this.#push().finally(() => {
      this.#pushing = undefined;
    });
    return this.#pushing;
  }

  async #push(): Promise<void> {
    const { clock, pending, others, shared } = this.#deps;
    let pauseMs = RETRY_MS.first;
    for (;;) {
      const rows = pending();
      if (rows.length === 0) return;
      const told = await Promise.allSettled(others().map((shard) => this.ask(shard, 'cool', rows)));
      if (told.every(({ status }) => status === 'fulfilled')) {
        await shared(rows);
        pauseMs = RETRY_MS.first;
      } else {
        await clock.sleep(pauseMs);
        pauseMs = Math.min(2 * pauseMs, RETRY_MS.most);
      }
    }
  }
}
