/** All rules over one history. Pure: what it says of a history does not depend on anything else. */
import type { History } from '../history.ts';
import { checkActiveCounts } from './active-counts.ts';
import { checkAnswers, checkServerTimes } from './answers.ts';
import { checkCapacity } from './capacity.ts';
import { checkCooldowns } from './cooldowns.ts';
import { checkGrantedOnce, checkIdempotency, checkTokens } from './grants.ts';
import { lifeOf } from './life.ts';
import { checkLives } from './lives.ts';
import { checkOffers, checkViews } from './offers.ts';
import { checkOrder } from './order.ts';
import { digestOf } from './story.ts';
import type { Finding } from './violation.ts';

/** What is certainly wrong in a history, and how much of it the rules could decide about. */
export function check(history: History): Finding {
  const digest = digestOf(history);
  const lives = new Map(
    [...digest.stories.values()].map((story) => [story, lifeOf(story, digest)]),
  );
  const findings = [
    checkAnswers(digest),
    checkServerTimes(digest),
    checkCapacity(digest, lives),
    checkGrantedOnce(digest),
    checkIdempotency(digest, lives),
    checkTokens(digest),
    checkLives(digest, lives),
    checkOrder(digest, lives),
    checkOffers(digest),
    checkViews(digest),
    checkCooldowns(digest),
    checkActiveCounts(digest, lives),
  ];
  return {
    violations: findings.flatMap(({ violations }) => violations),
    facts: Object.assign({}, ...findings.map(({ facts }) => facts)),
  };
}
