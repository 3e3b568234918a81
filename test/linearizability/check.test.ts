/** Each rule finds the histories that break it, and lets pass those in which nobody can be sure. */
import { describe, expect, it } from 'vitest';
import { ANSWER_CASES } from './cases/answers.ts';
import type { Case } from './cases/case.ts';
import { COOLDOWN_CASES } from './cases/cooldowns.ts';
import { COUNT_CASES, OFFER_CASES, VIEW_CASES } from './cases/fleet.ts';
import { CAPACITY_CASES, KEY_CASES, TOKEN_CASES } from './cases/grants.ts';
import { LOST_CASES, ORDER_CASES, REVIVED_CASES } from './cases/lives.ts';
import { check } from './check/check.ts';
import { RULES } from './check/violation.ts';
import { excerptOf } from './excerpt.ts';

const CASES: Readonly<Record<string, readonly Case[]>> = {
  'an answer by itself': ANSWER_CASES,
  'more leases than there may be': CAPACITY_CASES,
  'a lease and its key': KEY_CASES,
  'a fencing token': TOKEN_CASES,
  'a lease that is lost': LOST_CASES,
  'a lease that is over': REVIVED_CASES,
  'answers that must fit together': ORDER_CASES,
  'a grant of': OFFER_CASES,
  'a lease that shows': VIEW_CASES,
  'counts for the agents': COUNT_CASES,
  'a grant of what rests': COOLDOWN_CASES,
};

const titled = (cases: readonly Case[]) =>
  cases.map((one): [string, Case] => {
    const verdict = one.broken.length === 0 ? 'may be right' : `breaks ${one.broken.join(', ')}`;
    return [`${one.name}: ${verdict}`, one];
  });

describe.each(Object.entries(CASES))('%s', (_, cases) => {
  it.each(titled(cases))('%s', (_, { hand, broken }) => {
    const found = check(hand.history).violations;
    expect(
      [...new Set(found.map(({ rule }) => rule))].sort(),
      found.map(excerptOf).join('\n'),
    ).toEqual([...broken].sort());
  });
});

describe('the cases', () => {
  const all = Object.values(CASES).flat();

  it('break every rule', () => {
    expect(new Set(all.flatMap(({ broken }) => broken))).toEqual(new Set(RULES));
  });

  it('are shown by the operations that matter, in the order of calls', () => {
    for (const { hand } of all) {
      for (const violation of check(hand.history).violations) {
        expect(violation.evidence.length).toBeGreaterThan(0);
        const lines = excerptOf(violation).split('\n');
        expect(lines[0]).toBe(`${violation.rule}: ${violation.message}`);
        expect(lines.length).toBe(new Set(violation.evidence).size + 1);
        const times = lines.slice(1).map((line) => Number.parseFloat(line));
        expect(times).toEqual(times.toSorted((a, b) => a - b));
      }
    }
  });
});
