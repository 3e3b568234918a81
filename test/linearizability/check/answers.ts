/**
 * Every answer by itself: its status is one of the route's, its body one of the contract, and no
 * 500 among them. While the edge is down connections break and it may answer 503; at other times
 * nothing breaks.
 */
import { type Answer, answerOf, type Operation } from '../history.ts';
import type { Digest } from './story.ts';
import type { Finding, Violation } from './violation.ts';

/** What each kind may be answered with, beside 503: statuses, with the code if it is a refusal. */
const ANSWERS: Readonly<Record<Operation['kind'], readonly string[]>> = {
  acquire: ['201', '409 no_match', '422 idempotency_mismatch'],
  get: ['200', '404 unknown_lease'],
  renew: ['200', '404 unknown_lease', '410 lease_expired', '410 proxy_gone'],
  release: ['204'],
  report: ['204', '404 unknown_lease'],
  sync: ['200', '409 resync_required'],
};

export function checkAnswers({ history }: Digest): Finding {
  const violations: Violation[] = [];
  for (const operation of history.operations) {
    const fault = faultOf(operation);
    if (fault === undefined) continue;
    const message = `${operation.kind} by ${operation.who} ${fault}`;
    violations.push({ rule: 'answers', message, evidence: [operation] });
  }
  return { violations, facts: {} };
}

/** The status, with the code of a refusal. */
export function labelOf({ status, code }: Answer): string {
  return code === undefined ? String(status) : `${status} ${code}`;
}

function faultOf(operation: Operation): string | undefined {
  const { outcome, kind } = operation;
  if (outcome.kind === 'lost') {
    return outcome.why === 'stray'
      ? 'lost its connection, though nobody killed the edge'
      : undefined;
  }
  const label = labelOf(outcome);
  if (outcome.malformed !== undefined) return `was answered ${label}: ${outcome.malformed}`;
  if (outcome.status === 503) {
    return outcome.hasRetryAfter === true ? undefined : `was answered ${label} without Retry-After`;
  }
  if (!ANSWERS[kind].includes(label)) return `was answered ${label}`;
  const { noMatch } = outcome;
  if (noMatch === undefined) return undefined;
  const { considered, atCapacity, inCooldown, unhealthy, eligible } = noMatch;
  const isRight = eligible === 0 && considered === atCapacity + inCooldown + unhealthy;
  return isRight ? undefined : `was refused with counts that do not add up`;
}

/** The time that an answer tells lies between its call and its end. */
export function checkServerTimes({ history }: Digest): Finding {
  const violations: Violation[] = [];
  let timed = 0;
  for (const operation of history.operations) {
    const answer = answerOf(operation);
    if (answer === undefined) continue;
    const serverMs = operation.kind === 'sync' ? operation.serverMs : answer.lease?.serverMs;
    if (serverMs === undefined) continue;
    timed++;
    const { calledMs, endMs } = operation;
    if (serverMs >= calledMs - history.slackMs && serverMs <= endMs + history.slackMs) continue;
    const offMs = serverMs < calledMs ? serverMs - calledMs : serverMs - endMs;
    const message = `the server's time is ${offMs.toFixed(1)} ms off`;
    violations.push({ rule: 'server-time', message, evidence: [operation] });
  }
  return { violations, facts: { 'answers with a time': timed } };
}
