/**
 * One call of one shard's object: with the version of the interface, a deadline, and repetition
 * where that helps. Every call can be repeated, since a lease has its id from here. What keeps a
 * shard from answering comes back as a value, so that other shards can be asked instead; what
 * nobody expected is thrown.
 */
import {
  type AcquireResult,
  type Client,
  type LedgerCalls,
  type LedgerOp,
  type LedgerRpc,
  type Reply,
  RPC_VERSION,
} from '#edge/object/rpc.ts';
import type { Clock, Random, Timer } from '#shared/clock.ts';

/** Longest time that a call may take, beyond the time that it is meant to wait. */
export const CALL_TIMEOUT_MS = 10_000;
/** Repetitions of a call that met an object which had just gone away. */
const REPEATS_MAX = 2;
const BACKOFF_MS = { min: 25, max: 150 };

export interface CallDeps {
  /** A fresh stub of a shard's object: one that has seen an error may stay broken. */
  readonly shard: (index: number) => LedgerRpc;
  readonly clock: Clock;
  readonly random: Random;
}

/** The shard did not do it now. */
export type Unavailable = {
  readonly ok: false;
  readonly code: 'overloaded';
  /** Safe to be shown. */
  readonly reason: string;
  /** For the log. */
  readonly cause?: unknown;
  /** It may have done it all the same, or still do it. */
  readonly uncertain: boolean;
};

export type CallRefusal =
  | Unavailable
  | {
      readonly ok: false;
      readonly code: 'too_many_requests';
      readonly retryAfterSeconds: number;
    };

export type Outcome<Value> = { readonly ok: true; readonly value: Value } | CallRefusal;

/** What becomes of a request for a lease. */
export type AcquireOutcome = AcquireResult | CallRefusal;

export interface CallOptions<Op extends LedgerOp> {
  /** The crawler on whose behalf it is, with this shard's share of its limits. */
  readonly client?: Client | undefined;
  /** How long the call is meant to wait. */
  readonly waitMs?: number;
  /** The arguments of a repetition, where they depend on the time. */
  readonly again?: () => LedgerCalls[Op]['args'];
  /** No repetition once it has aborted. */
  readonly signal?: AbortSignal | undefined;
}

export async function callShard<Op extends LedgerOp>(
  deps: CallDeps,
  shard: number,
  op: Op,
  args: LedgerCalls[Op]['args'],
  options: CallOptions<Op> = {},
): Promise<Outcome<LedgerCalls[Op]['result']>> {
  const attempt: Attempt = { isOver: () => options.signal?.aborted === true };
  let timer: Timer | undefined;
  const deadline = new Promise<Unavailable>((resolve) => {
    timer = deps.clock.setTimer(
      () => {
        attempt.isOver = () => true;
        resolve(unavailable(`shard ${shard} did not answer in time`, undefined, true));
      },
      CALL_TIMEOUT_MS + (options.waitMs ?? 0),
    );
  });
  try {
    return await Promise.race([repeat(deps, shard, op, args, options, attempt), deadline]);
  } finally {
    timer?.cancel();
  }
}

/** Nobody waits for it any more when it is over. */
interface Attempt {
  isOver: () => boolean;
}

async function repeat<Op extends LedgerOp>(
  deps: CallDeps,
  shard: number,
  op: Op,
  args: LedgerCalls[Op]['args'],
  { client, again }: CallOptions<Op>,
  attempt: Attempt,
): Promise<Outcome<LedgerCalls[Op]['result']>> {
  let current = args;
  for (let repeats = 0; ; repeats++) {
    try {
      const call = { version: RPC_VERSION, op, client, args: current };
      return outcomeOf(shard, await deps.shard(shard).call<Op>(call));
    } catch (error) {
      const failure = failureOf(shard, error);
      if (failure === undefined) throw error;
      const isLast = repeats >= REPEATS_MAX || !failure.uncertain;
      if (isLast || attempt.isOver()) return failure;
      await deps.clock.sleep(backoffMs(deps.random));
      if (attempt.isOver()) return failure;
      current = again?.() ?? args;
    }
  }
}

function outcomeOf<Op extends LedgerOp>(
  shard: number,
  reply: Reply<Op>,
): Outcome<LedgerCalls[Op]['result']> {
  if (reply.ok) return reply;
  if (reply.refusal.code === 'unsupported_version') return otherVersion(shard);
  return { ok: false, ...reply.refusal };
}

/** What an error of the runtime means; undefined for one that is not the runtime's. */
function failureOf(shard: number, error: unknown): Unavailable | undefined {
  if (!(error instanceof Error)) return undefined;
  // The order counts: an overloaded object's errors may be marked as retryable, too.
  if ('overloaded' in error && error.overloaded === true) {
    return unavailable(`shard ${shard} has too much to do`, error, false);
  }
  if ('retryable' in error && error.retryable === true) {
    return unavailable(`shard ${shard} could not be reached`, error, true);
  }
  return /does not implement the method/.test(error.message)
    ? otherVersion(shard, error)
    : undefined;
}

/** While a deployment is in progress Worker and object may be of different versions. */
function otherVersion(shard: number, cause?: unknown): Unavailable {
  return unavailable(`shard ${shard} is being updated`, cause, false);
}

function unavailable(reason: string, cause: unknown, uncertain: boolean): Unavailable {
  return { ok: false, code: 'overloaded', reason, cause, uncertain };
}

function backoffMs(random: Random): number {
  return BACKOFF_MS.min + random() * (BACKOFF_MS.max - BACKOFF_MS.min);
}
