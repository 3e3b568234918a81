/**
 * A lease that was answered is not lost: while it certainly lives every request finds it. And one
 * that is over stays so: it cannot be looked at, renewed or, once it is forgotten, reported on.
 */
import { type Answer, answerOf, type LeaseOperation } from '../history.ts';
import { labelOf } from './answers.ts';
import { type Life, livesThrough } from './life.ts';
import { type Digest, operationsOf, type Story } from './story.ts';
import type { Finding, Violation } from './violation.ts';

type Verdict = { readonly rule: 'lost-lease' | 'revived-lease'; readonly wanted: string };

export function checkLives(digest: Digest, lives: ReadonlyMap<Story, Life>): Finding {
  const violations: Violation[] = [];
  const facts = {
    'uses of leases that certainly lived': 0,
    'uses after the time was over': 0,
    'uses after a release': 0,
    'uses after the proxy went away': 0,
    'late reports': 0,
  };
  for (const [story, life] of lives) {
    for (const operation of story.operations) {
      const answer = answerOf(operation);
      if (answer === undefined || operation.kind === 'release') continue;
      if (livesThrough(life, operation)) facts['uses of leases that certainly lived']++;
      else if (operation.calledMs > life.releasedMs) facts['uses after a release']++;
      else if (operation.calledMs > life.goneMs) facts['uses after the proxy went away']++;
      else if (operation.calledMs > life.expiredMs) facts['uses after the time was over']++;
      if (operation.kind === 'report' && isLate(operation, life)) facts['late reports']++;
      const wrong = judge(operation, answer, life, digest.history.cooldownMs);
      if (wrong === undefined) continue;
      violations.push({
        rule: wrong.rule,
        message: `${operation.kind} of lease ${story.leaseID} answered ${labelOf(answer)}: ${wrong.wanted}`,
        evidence: operationsOf(story),
        uids: [story.machine.uid],
      });
    }
  }
  return { violations, facts };
}

/** What is wrong with the answer, if anything certainly is. */
function judge(
  operation: LeaseOperation,
  { status, code }: Answer,
  life: Life,
  cooldownMs: number,
): Verdict | undefined {
  const { kind, calledMs } = operation;
  const isRefused = status === 404 || status === 410;
  const lost = (wanted: string): Verdict => ({ rule: 'lost-lease', wanted });
  const revived = (wanted: string): Verdict => ({ rule: 'revived-lease', wanted });
  if (kind === 'report') {
    const rememberedMs = life.maybeExpiredMs + cooldownMs;
    const isRemembered = operation.endMs < Math.min(rememberedMs, life.maybeReleasedMs);
    if (isRemembered && status === 404) return lost('it must still take reports');
    if (calledMs > life.releasedMs && status !== 404) return revived('it was released');
    if (calledMs > life.expiredMs + cooldownMs && status !== 404) return revived('it is forgotten');
    return undefined;
  }
  if (livesThrough(life, operation) && status !== 200) return lost('it certainly lives');
  if (calledMs > life.releasedMs && status !== 404) return revived('it was released');
  if (calledMs > life.expiredMs && !isRefused) return revived('its time is over');
  if (calledMs > life.goneMs && !isRefused) return revived('its proxy was removed or replaced');
  if (code === 'proxy_gone' && operation.endMs < life.maybeGoneMs) {
    return lost('its proxy was neither removed nor replaced');
  }
  if (code === 'lease_expired' && operation.endMs < life.maybeExpiredMs) {
    return lost('its time is not over');
  }
  return undefined;
}

function isLate({ calledMs }: LeaseOperation, { expiredMs, goneMs, releasedMs }: Life): boolean {
  return calledMs < releasedMs && calledMs > Math.min(expiredMs, goneMs);
}
