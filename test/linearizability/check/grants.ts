/** Who gets which lease: one request, or those of one Idempotency-Key; and with which token. */
import { type AcquireOperation, answerOf, isUnknown, type SeenLease } from '../history.ts';
import { type Life, livesThrough } from './life.ts';
import { type Digest, leaseOf, operationsOf, type Story } from './story.ts';
import type { Finding, Violation } from './violation.ts';

/** No lease is granted to two requests, but for repetitions of one key and body. */
export function checkGrantedOnce({ stories }: Digest): Finding {
  const violations: Violation[] = [];
  let repeated = 0;
  for (const { leaseID, answered } of stories.values()) {
    const [first, ...others] = answered;
    if (others.length === 0) continue;
    repeated++;
    const stranger = others.find(
      ({ key, body }) => key === undefined || key !== first.key || body !== first.body,
    );
    if (stranger === undefined) continue;
    const message = `lease ${leaseID} was granted to two requests`;
    violations.push({ rule: 'granted-twice', message, evidence: [first, stranger] });
  }
  return { violations, facts: { 'leases answered to repeated keys': repeated } };
}

/**
 * While a lease certainly lives its key gets it again, and with another body 422; two leases of one
 * key never live at once.
 */
export function checkIdempotency(digest: Digest, lives: ReadonlyMap<Story, Life>): Finding {
  const violations: Violation[] = [];
  let decided = 0;
  const withKey = digest.acquires.filter(({ key }) => key !== undefined);
  const byKey = Map.groupBy(withKey, ({ key }) => key ?? '');
  const storiesByKey = Map.groupBy(digest.stories.values(), ({ answered }) => answered[0].key);
  for (const [key, requests] of byKey) {
    const stories = storiesByKey.get(key) ?? [];
    const broken = (message: string, ...about: readonly Story[]) =>
      violations.push({
        rule: 'idempotency',
        message: `the key ${key} ${message}`,
        evidence: [...about.flatMap(operationsOf), ...requests],
      });
    const [one, two] = togetherIn(stories, lives);
    if (one !== undefined && two !== undefined) {
      broken(`has two leases that live, ${one.leaseID} and ${two.leaseID}`, one, two);
      continue;
    }
    for (const request of requests) {
      const answer = answerOf(request);
      if (answer === undefined) continue;
      const living = stories.find((story) => {
        const life = lives.get(story);
        return life !== undefined && livesThrough(life, request);
      });
      if (living !== undefined) {
        decided++;
        const isSame = living.answered[0].body === request.body;
        const isRight = isSame
          ? answer.lease?.leaseID === living.leaseID
          : answer.code === 'idempotency_mismatch';
        if (isRight) continue;
        const wanted = isSame ? 'was not granted again' : 'did not refuse another body';
        broken(`of lease ${living.leaseID}, which lives, ${wanted}`, living);
      } else if (answer.code === 'idempotency_mismatch' && !hasOther(requests, request)) {
        broken('was refused, and nobody used it with another body');
      }
    }
  }
  return { violations, facts: { 'repeated keys of leases that certainly lived': decided } };
}

/** Two leases that live at the same moment, if there are any: the later one was one too many. */
function togetherIn(stories: readonly Story[], lives: ReadonlyMap<Story, Life>): readonly Story[] {
  const spans = stories.flatMap((story) =>
    (lives.get(story)?.certain ?? []).map((span) => ({ story, ...span })),
  );
  spans.sort((a, b) => a.calledMs - b.calledMs);
  for (const [index, { story, calledMs }] of spans.entries()) {
    const earlier = spans.slice(0, index).find((one) => one.endMs > calledMs);
    if (earlier !== undefined && earlier.story !== story) return [earlier.story, story];
  }
  return [];
}

/** Whether the key may have a lease of another body by the end of this request. */
function hasOther(requests: readonly AcquireOperation[], request: AcquireOperation): boolean {
  return requests.some(
    (other) =>
      other.body !== request.body &&
      other.calledMs <= request.endMs &&
      (isUnknown(other) || leaseOf(other) !== undefined),
  );
}

/**
 * Fencing: what is granted later has the higher token, over all proxies; a token belongs to one
 * lease and stays with it.
 */
export function checkTokens(digest: Digest): Finding {
  const violations: Violation[] = [];
  const broken = (message: string, ...stories: readonly Story[]) =>
    violations.push({
      rule: 'tokens',
      message,
      evidence: stories.flatMap((story) => requestsOf(digest, story)),
    });
  const owners = new Map<number, Story>();
  for (const story of digest.stories.values()) {
    const { token } = story.lease;
    const owner = owners.get(token);
    if (owner !== undefined) broken(`token ${token} was given twice`, owner, story);
    owners.set(token, story);
    const seen = [...story.answered.map(leaseOf), ...seenLater(story)];
    const other = seen.find((lease) => lease !== undefined && lease.token !== token);
    if (other !== undefined) {
      broken(`lease ${story.leaseID} changed its token to ${other.token}`, story);
    }
  }
  const byCall = [...digest.stories.values()].sort((a, b) => a.grant.calledMs - b.grant.calledMs);
  const byAnswer = byCall.toSorted((a, b) => a.grant.endMs - b.grant.endMs);
  let highest: Story | undefined;
  let answered = 0;
  let ordered = 0;
  for (const story of byCall) {
    for (;;) {
      const earlier = byAnswer[answered];
      if (earlier === undefined || earlier.grant.endMs >= story.grant.calledMs) break;
      if (highest === undefined || earlier.lease.token > highest.lease.token) highest = earlier;
      answered++;
    }
    if (highest === undefined) continue;
    ordered++;
    if (highest.lease.token < story.lease.token) continue;
    const same = highest.machine.uid === story.machine.uid ? 'of the same proxy' : 'granted before';
    broken(`token ${story.lease.token} is below ${highest.lease.token}, ${same}`, highest, story);
  }
  return { violations, facts: { 'grants after another one': ordered } };
}

/** Every request that is about the lease, or carries its key. */
function requestsOf({ acquires }: Digest, { answered }: Story): readonly AcquireOperation[] {
  const [{ key }] = answered;
  return key === undefined ? answered : acquires.filter((acquire) => acquire.key === key);
}

function seenLater({ operations }: Story): (SeenLease | undefined)[] {
  return operations.map((operation) => answerOf(operation)?.lease);
}
