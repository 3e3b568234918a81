/**
 * What several shards' refusals of one request come to. A crawler is told that it has too much only
 * when every shard said so; else what those answered that looked for a proxy; else that the
 * ledger is busy.
 */
import type { AcquireOutcome } from './calls.ts';

type Refused = Extract<AcquireOutcome, { ok: false }>;
type NoMatchRefusal = Extract<Refused, { code: 'no_match' }>;

/** Whether the outcome ends the request: a lease, or what no other shard would answer otherwise. */
export function isFinal(outcome: AcquireOutcome): boolean {
  if (outcome.ok) return true;
  switch (outcome.code) {
    case 'ttl_too_long':
    case 'idempotency_mismatch':
    case 'cancelled':
      return true;
    case 'no_match':
    case 'overloaded':
    case 'queue_full':
    case 'too_many_leases':
    case 'too_many_requests':
    case 'passed_on':
    case 'noted':
      return false;
  }
}

/** The one refusal that stands for all of them; `outcomes` is not empty and has no lease. */
export function verdictOf(outcomes: readonly AcquireOutcome[]): AcquireOutcome {
  const refusals = outcomes.filter((outcome) => !outcome.ok);
  const [first] = refusals;
  if (first === undefined) throw new Error('a verdict needs a refusal');
  if (refusals.every((refusal) => isTooMany(refusal))) {
    return soonest(refusals) ?? first;
  }
  const noMatches = refusals.filter((refusal) => refusal.code === 'no_match');
  if (noMatches.length > 0) return sumOf(noMatches);
  return (
    soonest(refusals.filter((refusal) => refusal.code === 'queue_full')) ??
    refusals.find((refusal) => refusal.code === 'overloaded') ??
    first
  );
}

function isTooMany(refusal: Refused): boolean {
  return refusal.code === 'too_many_leases' || refusal.code === 'too_many_requests';
}

/** The refusal after which a repetition may help first. */
function soonest(refusals: readonly Refused[]): Refused | undefined {
  const seconds = (refusal: Refused) =>
    'retryAfterSeconds' in refusal
      ? (refusal.retryAfterSeconds ?? Number.POSITIVE_INFINITY)
      : Number.POSITIVE_INFINITY;
  let best: Refused | undefined;
  for (const refusal of refusals) {
    if (best === undefined || seconds(refusal) < seconds(best)) best = refusal;
  }
  return best;
}

function sumOf(refusals: readonly NoMatchRefusal[]): NoMatchRefusal {
  const sum = { considered: 0, atCapacity: 0, inCooldown: 0, unhealthy: 0, eligible: 0 };
  let withheld = 0;
  let retryAfterSeconds = Number.POSITIVE_INFINITY;
  for (const { noMatch, withheld: more } of refusals) {
    sum.considered += noMatch.considered;
    sum.atCapacity += noMatch.atCapacity;
    sum.inCooldown += noMatch.inCooldown;
    sum.unhealthy += noMatch.unhealthy;
    withheld += more;
    retryAfterSeconds = Math.min(retryAfterSeconds, noMatch.retryAfterSeconds ?? Infinity);
  }
  const noMatch = Number.isFinite(retryAfterSeconds) ? { ...sum, retryAfterSeconds } : sum;
  return { ok: false, code: 'no_match', noMatch, withheld };
}
