/**
 * A request for a lease with one or several shards. Each shard owns a part of the fleet, so a
 * request goes from shard to shard until one grants, and is refused only when all have refused.
 * One without a key starts at a random shard, which spreads load. One with a key starts at the
 * shard that its key hashes to; that one remembers when the request went on (`keyed.ts`).
 */
import { type Ask, Attempts, type Caller, type RouterDeps } from './attempts.ts';
import type { AcquireOutcome } from './calls.ts';
import { acquireKeyed } from './keyed.ts';
import { ringFrom } from './ring.ts';
import { isFinal, verdictOf } from './verdict.ts';
import { waitEverywhere } from './waiting.ts';

const CANCELLED = { ok: false, code: 'cancelled' } as const;

/** The outcome, and how to give back its lease when its crawler has hung up before it heard. */
export type Acquired =
  | Extract<AcquireOutcome, { readonly ok: false }>
  | (Extract<AcquireOutcome, { readonly ok: true }> & { readonly giveBack: () => Promise<void> });

export async function acquire(deps: RouterDeps, ask: Ask, caller: Caller): Promise<Acquired> {
  const attempts = new Attempts(deps, ask, caller);
  const outcome = await acquireWith(deps, ask, caller, attempts).finally(() => attempts.settle());
  if (!outcome.ok) return outcome;
  return { ...outcome, giveBack: () => attempts.giveBack(outcome.lease.leaseID) };
}

async function acquireWith(
  deps: RouterDeps,
  ask: Ask,
  caller: Caller,
  attempts: Attempts,
): Promise<AcquireOutcome> {
  const waitMs = (ask.request.waitSeconds ?? 0) * 1000;
  if (waitMs === 0) return firstRound(deps, ask, caller, attempts);
  const { signal } = caller;
  if (signal?.aborted === true) return CANCELLED;
  const waitUntilMs = deps.clock.monotonicMs() + waitMs;
  const hangUp = () => attempts.abandon();
  signal?.addEventListener('abort', hangUp, { once: true });
  try {
    if (deps.shards === 1) return await attempts.acquire(0, 'first', waitUntilMs);
    const outcome = await firstRound(deps, ask, caller, attempts);
    if (isFinal(outcome)) return outcome;
    if (attempts.isAbandoned) return CANCELLED;
    return await waitEverywhere(deps.shards, attempts, waitUntilMs);
  } finally {
    signal?.removeEventListener('abort', hangUp);
  }
}

/** Asks without waiting. */
async function firstRound(
  { shards, random }: RouterDeps,
  { request, idempotency }: Ask,
  { client }: Caller,
  attempts: Attempts,
): Promise<AcquireOutcome> {
  if (shards === 1) return attempts.acquire(0, 'first');
  if (idempotency !== undefined || request.sessionKey !== undefined) {
    return acquireKeyed({ idempotency, client, request }, shards, attempts);
  }
  const start = Math.floor(random() * shards);
  const outcomes: AcquireOutcome[] = [];
  let place: 'first' | 'further' = 'first';
  for (const shard of ringFrom(start, shards)) {
    const outcome = await attempts.acquire(shard, place);
    if (isFinal(outcome)) return outcome;
    outcomes.push(outcome);
    if (attempts.isAbandoned) return CANCELLED;
    // A shard that refused to look has not counted the request: the next one does.
    place = !outcome.ok && outcome.code === 'too_many_requests' ? 'first' : 'further';
  }
  return verdictOf(outcomes);
}
