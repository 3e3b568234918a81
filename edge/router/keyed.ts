/**
 * A request with an idempotency key or a session key while there are several shards. Its home is
 * the shard that the key hashes to: it has the lease of an earlier request with the key, or
 * remembers that such a request went on to the others, which then are asked what they have of it.
 * Without home's word nothing is certain, so an unreachable home ends the request.
 */
import { shardOfKey } from '#edge/ledger/shards.ts';
import type { FindCall, FindResult } from '#edge/object/rpc.ts';
import type { Attempts } from './attempts.ts';
import type { AcquireOutcome, Outcome } from './calls.ts';
import { ringFrom } from './ring.ts';
import { isFinal, verdictOf } from './verdict.ts';

export interface KeyedAsk extends FindCall {
  readonly shards: number;
  /** What decides which shard is home. */
  readonly key: string;
}

export async function acquireKeyed(ask: KeyedAsk, attempts: Attempts): Promise<AcquireOutcome> {
  const { shards, key } = ask;
  const home = shardOfKey(key, shards);
  const atHome = await attempts.acquire(home, 'home');
  if (isFinal(atHome)) return atHome;
  // The others in an order that is the same for every request with the key.
  const [, ...others] = ringFrom(home, shards);
  if (!atHome.ok && atHome.code === 'passed_on') {
    const found = await find(ask, others, attempts);
    return 'outcome' in found ? found.outcome : goOn([...found.order, home], attempts, []);
  }
  if (!atHome.ok && (atHome.code === 'too_many_requests' || 'uncertain' in atHome)) return atHome;
  return goOn(others, attempts, [atHome]);
}

async function goOn(
  shards: readonly number[],
  attempts: Attempts,
  before: readonly AcquireOutcome[],
): Promise<AcquireOutcome> {
  const outcomes = [...before];
  for (const shard of shards) {
    if (attempts.isAbandoned) return { ok: false, code: 'cancelled' };
    const outcome = await attempts.acquire(shard, 'further');
    if (isFinal(outcome)) return outcome;
    outcomes.push(outcome);
  }
  return verdictOf(outcomes);
}

/** What others have of the key: its lease, or in which order they should be asked for one. */
async function find(
  ask: KeyedAsk,
  others: readonly number[],
  attempts: Attempts,
): Promise<{ readonly outcome: AcquireOutcome } | { readonly order: readonly number[] }> {
  const { idempotency, client, request } = ask;
  const answers = await Promise.all(
    others.map((shard) => attempts.call(shard, 'find', { idempotency, client, request })),
  );
  const known = answers.flatMap((answer) => (answer.ok ? [answer.value] : []));
  const lease = known.find((value) => value.lease !== undefined)?.lease;
  if (known.some(({ mismatch }) => mismatch)) {
    return { outcome: { ok: false, code: 'idempotency_mismatch' } };
  }
  if (lease !== undefined) return { outcome: { ok: true, lease } };
  const silent = answers.find((answer) => !answer.ok);
  // The shard that did not answer may have the lease; a second one must not be granted beside it.
  if (silent !== undefined && idempotency !== undefined) return { outcome: silent };
  return { order: boundFirst(others, answers) };
}

/** The shard that the session was bound to last comes first. */
function boundFirst(
  others: readonly number[],
  answers: readonly Outcome<FindResult>[],
): readonly number[] {
  let highest = -1;
  let bound: number | undefined;
  for (const [index, answer] of answers.entries()) {
    const token = answer.ok ? (answer.value.boundToken ?? -1) : -1;
    if (token > highest) [highest, bound] = [token, others[index]];
  }
  return bound === undefined ? others : [bound, ...others.filter((shard) => shard !== bound)];
}
