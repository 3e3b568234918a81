/**
 * Linearizability of each lease by itself, after Wing and Gong: is there an order of its
 * operations, each at a moment between its call and its end, in which a lease that obeys the rules
 * gives all these answers? It sees what single spans do not: answers that are each possible, but
 * not together.
 *
 * Time is part of the order: an operation takes place at the earliest moment that its answer
 * allows, which leaves the most to those after it.
 */
import { answerOf, isUnknown, type LeaseOperation, type Operation } from '../history.ts';
import type { Life } from './life.ts';
import { type Digest, operationsOf, type Story } from './story.ts';
import type { Finding, Violation } from './violation.ts';

/** Leases with more ways than this to order their operations are left undecided, and counted. */
const STEPS_MAX = 50_000;

/** The lease after some of its operations. It expires somewhere from `lowMs` to `highMs`. */
interface State {
  readonly nowMs: number;
  readonly lowMs: number;
  readonly highMs: number;
  readonly end: 'none' | 'released' | 'gone';
}

type Outcome = 'explained' | 'impossible' | 'undecided';

export function checkOrder(digest: Digest, lives: ReadonlyMap<Story, Life>): Finding {
  const violations: Violation[] = [];
  let explained = 0;
  let undecided = 0;
  for (const [story, life] of lives) {
    const outcome = search(story, life, digest.history);
    if (outcome === 'explained') explained++;
    else if (outcome === 'undecided') undecided++;
    else {
      violations.push({
        rule: 'order',
        message: `no order of its operations explains the answers about lease ${story.leaseID}`,
        evidence: operationsOf(story),
        uids: [story.machine.uid],
      });
    }
  }
  return {
    violations,
    facts: { 'leases with an order': explained, 'leases left undecided': undecided },
  };
}

interface Terms {
  readonly life: Life;
  readonly slackMs: number;
  readonly cooldownMs: number;
}

function search(story: Story, life: Life, { slackMs, cooldownMs }: Digest['history']): Outcome {
  const terms = { life, slackMs, cooldownMs };
  const operations: Operation[] = [...story.answered.slice(1), ...story.operations];
  operations.sort((a, b) => a.calledMs - b.calledMs);
  const tried = new Set<string>();
  let steps = 0;
  const explains = (state: State, open: readonly Operation[]): boolean => {
    if (open.every(isUnknown)) return true;
    if (++steps > STEPS_MAX) return false;
    const key = [...Object.values(state), ...open.map(({ id }) => id)].join();
    if (tried.has(key)) return false;
    tried.add(key);
    const lastMs = Math.min(...open.filter((one) => !isUnknown(one)).map(({ endMs }) => endMs));
    if (state.nowMs > lastMs) return false;
    return open.some((operation) => {
      if (operation.calledMs > lastMs) return false;
      const rest = open.filter((other) => other !== operation);
      return after(state, operation, terms).some((next) => explains(next, rest));
    });
  };
  const { expiresMs } = story.lease;
  const granted: State = {
    nowMs: story.grant.calledMs,
    lowMs: expiresMs - slackMs,
    highMs: expiresMs + slackMs,
    end: 'none',
  };
  if (explains(granted, operations)) return 'explained';
  return steps > STEPS_MAX ? 'undecided' : 'impossible';
}

/** The states that the operation can lead to with its answer; none when it cannot come next. */
function after(state: State, operation: Operation, terms: Terms): State[] {
  const soonestMs = Math.max(state.nowMs, operation.calledMs);
  const answer = answerOf(operation);
  const at = (changed: Partial<State>, nowMs = soonestMs): State[] =>
    nowMs <= operation.endMs ? [{ ...state, nowMs, ...changed }] : [];
  const seen = answer?.lease;
  const isLive = isLiveAt(state, soonestMs, terms);
  switch (operation.kind) {
    case 'release':
      return at({ end: 'released' });
    case 'renew':
      if (answer === undefined) return isLive ? at(extended(operation, soonestMs, terms)) : [];
      if (seen !== undefined) return isLive ? at(pinned(seen.expiresMs, terms)) : [];
      return refused(state, operation, answer.code, soonestMs, terms, at);
    case 'acquire':
    case 'get':
      if (seen === undefined) {
        return answer?.status === 404
          ? refused(state, operation, answer.code, soonestMs, terms, at)
          : [];
      }
      return isLive && agrees(state, seen.expiresMs) ? at(pinned(seen.expiresMs, terms)) : [];
    case 'report':
      return reported(state, answer?.status, soonestMs, terms, at);
    default:
      return [];
  }
}

type At = (changed: Partial<State>, nowMs?: number) => State[];

function isLiveAt(state: State, nowMs: number, { life }: Terms): boolean {
  return state.end === 'none' && nowMs < state.highMs && nowMs <= life.goneMs;
}

/** Each way in which the lease can be over by the end of the operation. */
function refused(
  state: State,
  operation: { readonly kind: string },
  code: string | undefined,
  soonestMs: number,
  { life, cooldownMs }: Terms,
  at: At,
): State[] {
  if (state.end === 'released') return code === 'unknown_lease' ? at({}) : [];
  const isGet = operation.kind !== 'renew';
  const states: State[] = [];
  if (code === 'proxy_gone' || isGet) {
    states.push(...at({ end: 'gone' }, Math.max(soonestMs, life.maybeGoneMs)));
  }
  if (code === 'lease_expired' || isGet) {
    const nowMs = Math.max(soonestMs, state.lowMs);
    states.push(...at({ highMs: Math.min(state.highMs, nowMs) }, nowMs));
  }
  // Forgotten: an answer that names no reason.
  if (code === 'unknown_lease' && !isGet) {
    const nowMs = Math.max(soonestMs, state.lowMs + cooldownMs);
    states.push(...at({ highMs: Math.min(state.highMs, nowMs) }, nowMs));
  }
  return states;
}

function reported(
  state: State,
  status: number | undefined,
  soonestMs: number,
  { cooldownMs }: Terms,
  at: At,
): State[] {
  if (status === undefined) return [];
  if (state.end === 'released') return status === 404 ? at({}) : [];
  if (status === 204) return soonestMs < state.highMs + cooldownMs ? at({}) : [];
  const nowMs = Math.max(soonestMs, state.lowMs + cooldownMs);
  return at({ highMs: Math.min(state.highMs, nowMs) }, nowMs);
}

function extended(
  { endMs, ttlSeconds }: Extract<LeaseOperation, { kind: 'renew' }>,
  soonestMs: number,
  { slackMs }: Terms,
): Partial<State> {
  const ttlMs = ttlSeconds * 1000;
  return { lowMs: soonestMs + ttlMs - slackMs, highMs: endMs + ttlMs + slackMs };
}

function agrees({ lowMs, highMs }: State, expiresMs: number): boolean {
  return expiresMs >= lowMs && expiresMs <= highMs;
}

function pinned(expiresMs: number, { slackMs }: Terms): Partial<State> {
  return { lowMs: expiresMs - slackMs, highMs: expiresMs + slackMs };
}
