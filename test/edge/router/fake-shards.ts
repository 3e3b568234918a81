/** Shards whose answers a test writes, and a ledger in front of them that notes what it asks. */

import type { AcquireResult, Call, LedgerCalls, LedgerOp, LedgerRpc } from '#edge/object/rpc.ts';
import type { Caller, RouterDeps } from '#edge/router/attempts.ts';
import { createLedger } from '#edge/router/ledger.ts';
import { type ClientLimits, parseClientLimits } from '#edge/router/limits.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { leaseOf } from '#test/fakes/lease.ts';

/** What was asked of a shard. */
export type Asked<Op extends LedgerOp = LedgerOp> = { readonly shard: number } & Call<Op>;

type Answer<Op extends LedgerOp> = (
  args: LedgerCalls[Op]['args'],
  shard: number,
) => LedgerCalls[Op]['result'] | Promise<LedgerCalls[Op]['result']>;

/** By call; a call that a test does not answer is a fault of the test. An error is thrown. */
export type Script = { readonly [Op in LedgerOp]?: Answer<Op> };

export class TooManyRequests {
  readonly retryAfterSeconds: number;

  constructor(retryAfterSeconds: number) {
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

export interface FakeOptions {
  readonly shards?: number;
  readonly limits?: string;
  /** Where `random` stands: picks the shard that is asked first. */
  readonly random?: () => number;
  /** The stub itself, in place of a script. */
  readonly stub?: (index: number) => LedgerRpc;
}

export function fakeLedger(script: Script, options: FakeOptions = {}) {
  const { shards = 1, limits = '', random = () => 0, stub } = options;
  const clock = new FakeClock();
  const asked: Asked[] = [];
  let stubs = 0;
  let tokens = 0;
  const deps: RouterDeps = {
    shards,
    limits: limitsOf(limits),
    clock,
    random,
    randomToken: () => `t${tokens++}`,
    shard: (index) => {
      stubs++;
      return stub?.(index) ?? scripted(script, index, asked);
    },
  };
  const late: Promise<unknown>[] = [];
  const caller: Caller = { client: 'shop', waitUntil: (work) => void late.push(work) };
  return {
    ledger: createLedger(deps),
    clock,
    asked,
    caller,
    /** What was asked, as `op@shard`, or `op@shard place`. */
    trace: () => asked.filter(({ op }) => op !== 'settle').map(traceOf),
    /** How many stubs were taken. */
    stubs: () => stubs,
    /** Waits for the work behind the answers. */
    settled: () => Promise.all(late),
  };
}

function scripted(script: Script, shard: number, asked: Asked[]): LedgerRpc {
  return {
    async call(call) {
      asked.push({ ...call, shard });
      const answer = script[call.op];
      if (call.op === 'settle') return { ok: true, value: undefined };
      if (answer === undefined) throw new Error(`nobody expected ${call.op} at ${shard}`);
      try {
        return { ok: true, value: await answer(call.args, shard) };
      } catch (error) {
        if (!(error instanceof TooManyRequests)) throw error;
        const { retryAfterSeconds } = error;
        return { ok: false, refusal: { code: 'too_many_requests', retryAfterSeconds } };
      }
    },
  };
}

function traceOf({ op, shard, args }: Asked): string {
  const place = typeof args === 'object' && 'place' in args ? ` ${args.place}` : '';
  return `${op}@${shard}${place}`;
}

function limitsOf(text: string): ClientLimits {
  const parsed = parseClientLimits(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return parsed.limits;
}

export const granted = (leaseID: string): AcquireResult => ({ ok: true, lease: leaseOf(leaseID) });

export function noMatch(counts: {
  readonly atCapacity?: number;
  readonly inCooldown?: number;
  readonly unhealthy?: number;
  readonly withheld?: number;
  readonly retryAfterSeconds?: number;
}): AcquireResult {
  const { atCapacity = 0, inCooldown = 0, unhealthy = 0, withheld = 0, ...rest } = counts;
  const considered = atCapacity + inCooldown + unhealthy;
  const noMatch = { considered, atCapacity, inCooldown, unhealthy, eligible: 0, ...rest };
  return { ok: false, code: 'no_match', noMatch, withheld };
}

/** An error as the runtime marks its own. */
export function runtimeError(marks: { readonly retryable?: true; readonly overloaded?: true }) {
  return Object.assign(new Error('from the runtime'), marks);
}
