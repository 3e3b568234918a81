/**
 * A request with an idempotency key or a session key while there are several shards. Its home is
 * the shard that the key hashes to: it has the lease of an earlier request with the key, or
 * remembers that such a request went on to the others, which then are asked what they have of it.
 * Without home's word nothing is certain, so an unreachable home ends the request.
 *
 * One with both keys begins at the home of its session, where its proxy is likely to be; the home
 * of its idempotency key is told before, so that it grants nothing when the request comes again.
 */
import { shardOfKey } from '#edge/ledger/shards.ts';
import type { FindCall, FindResult } from '#edge/object/rpc.ts';
import type { Attempts } from './attempts.ts';
import type { AcquireOutcome, Outcome } from './calls.ts';
import { ringFrom } from './ring.ts';
import { isFinal, verdictOf } from './verdict.ts';

export async function acquireKeyed(
  ask: FindCall,
  shards: number,
  attempts: Attempts,
): Promise<AcquireOutcome> {
  const { keyHome, home } = homesOf(ask, shards);
  const ring = ringFrom(home, shards);
  if (keyHome !== undefined && keyHome !== home) {
    const noted = await attempts.arbitrate(keyHome, 'note');
    if (isRefused(noted, 'passed_on')) return lookAround(ask, ring, keyHome, attempts);
    if (!isRefused(noted, 'noted')) return noted;
  }
  const atHome = await (keyHome === home
    ? attempts.arbitrate(home, 'home')
    : attempts.acquire(home, 'home'));
  if (atHome.ok || isFinal(atHome)) return atHome;
  if (atHome.code === 'passed_on') {
    // By the key, or by the session: then the key is not remembered yet.
    const isUnsure = keyHome === home && ask.request.sessionKey !== undefined;
    return lookAround(ask, ring, home, attempts, isUnsure);
  }
  if (atHome.code === 'too_many_requests' || 'uncertain' in atHome) return atHome;
  // Home remembers by itself when it has no proxy; when it did not look for one, it is told to.
  if (atHome.code !== 'no_match' && keyHome === home) {
    const end = await note(home, attempts);
    if (end !== undefined) return end;
  }
  return goOn(without(ring, home), attempts, [atHome]);
}

/** The homes of the idempotency key, and of the key that the request goes by. */
function homesOf({ idempotency, client, request }: FindCall, shards: number) {
  const { sessionKey } = request;
  const keyHome = idempotency && shardOfKey(idempotency.key, shards);
  const sessionHome =
    sessionKey === undefined ? undefined : shardOfKey(`${client}\n${sessionKey}`, shards);
  return { keyHome, home: sessionHome ?? keyHome ?? 0 };
}

/** After a home has passed the key on once before: asks for its lease, then all for a new one. */
async function lookAround(
  ask: FindCall,
  ring: readonly number[],
  home: number,
  attempts: Attempts,
  isUnsure = false,
): Promise<AcquireOutcome> {
  const found = await find(ask, without(ring, home), attempts);
  if ('outcome' in found) return found.outcome;
  const end = isUnsure ? await note(home, attempts) : undefined;
  return end ?? goOn([...found.order, home], attempts, []);
}

/** Sees to it that home remembers the key; an outcome ends the request. */
async function note(home: number, attempts: Attempts): Promise<AcquireOutcome | undefined> {
  const outcome = await attempts.acquire(home, 'note');
  const isNoted = isRefused(outcome, 'noted') || isRefused(outcome, 'passed_on');
  return isNoted ? undefined : outcome;
}

function isRefused(outcome: AcquireOutcome, code: 'noted' | 'passed_on'): boolean {
  return !outcome.ok && outcome.code === code;
}

function without(ring: readonly number[], shard: number): number[] {
  return ring.filter((one) => one !== shard);
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
  ask: FindCall,
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
