/** Answers that are wrong by themselves. */
import type { NoMatch } from '#shared/wire/errors.ts';
import { type Case, fleet, ONE, one, TWO } from './case.ts';

const counts = (considered: number): { readonly noMatch: NoMatch } => ({
  noMatch: { considered, atCapacity: 1, inCooldown: 0, unhealthy: 0, eligible: 0 },
});

export const ANSWER_CASES: readonly Case[] = [
  {
    name: 'a history in which all is well',
    hand: one()
      .get([40, 50], 'one')
      .ask([51, 55], [409, 'no_match'], {}, counts(1))
      .renew([60, 70], 'one', 200, 3_000)
      .report([72, 75], 'one', { result: 'ok' })
      .release([80, 90], 'one')
      .renew([100, 110], 'one', [404, 'unknown_lease'])
      .grant([120, 130], TWO)
      .renew([2_100, 2_110], 'two', [410, 'lease_expired']),
    broken: [],
  },
  { name: 'a 500', hand: one().get([40, 50], 'one', [500, 'internal']), broken: ['answers'] },
  {
    name: 'a status that the route does not have',
    hand: one().release([40, 50], 'one', 404),
    broken: ['answers'],
  },
  {
    name: 'a 503 that does not say when to come again',
    hand: fleet().ask([20, 30], [503, 'overloaded']),
    broken: ['answers'],
  },
  {
    name: 'a 503 that does',
    hand: fleet().ask([20, 30], [503, 'overloaded'], {}, { hasRetryAfter: true }),
    broken: [],
  },
  {
    name: 'counts that do not add up',
    hand: fleet().ask([20, 30], [409, 'no_match'], {}, counts(2)),
    broken: ['answers'],
  },
  {
    name: 'a body that is none of the contract',
    hand: fleet().ask([20, 30], [409, 'no_match'], {}, { malformed: 'no message' }),
    broken: ['answers'],
  },
  {
    name: 'a time before the call',
    hand: fleet().grant([20, 30], ONE, {}, { serverMs: 15 }),
    broken: ['server-time'],
  },
  {
    name: 'a time as near as the clocks can be compared',
    hand: fleet().grant([20, 30], ONE, {}, { serverMs: 19 }),
    broken: [],
  },
];
