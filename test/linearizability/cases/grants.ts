/** Grants that must not be, or not be answered like this. */
import { type Case, fleet, ONE, one, TWO } from './case.ts';

const KEYED = { key: 'k', body: '{}' };
const OTHER = { key: 'k', body: '{"ttlSeconds":1}' };
/** Room for two leases, so that only what is tested is wrong. */
const roomy = () => fleet({ a: { maxLeases: 2 } });

export const CAPACITY_CASES: readonly Case[] = [
  { name: 'a second lease', hand: one().grant([40, 50], TWO), broken: ['capacity'] },
  {
    name: 'two that are granted at the same time',
    hand: fleet().grant([20, 50], ONE).grant([25, 55], TWO),
    broken: ['capacity'],
  },
  {
    name: 'a second lease while the first is being released',
    hand: one().release([35, 60], 'one').grant([40, 50], TWO),
    broken: [],
  },
  {
    name: 'a second lease after a release that got no answer',
    hand: one().release([35, 60], 'one', 'lost').grant([100, 110], TWO),
    broken: [],
  },
  {
    name: 'a second lease when the time of the first may be over',
    hand: fleet()
      .grant([20, 30], { ...ONE, untilMs: 100 })
      .grant([80, 99], TWO),
    broken: [],
  },
  {
    name: 'a second lease when a renewal has set a later time',
    hand: fleet()
      .grant([20, 30], { ...ONE, untilMs: 100 })
      .renew([40, 50], 'one', 200, 1_045)
      .grant([120, 130], TWO),
    broken: ['capacity'],
  },
  {
    name: 'a second lease when a renewal without an answer may have set a sooner time',
    hand: one().renew([40, 60], 'one', 'lost', 0, 1).grant([1_050, 1_080], TWO),
    broken: [],
  },
  {
    name: 'a second lease before even that time',
    hand: one().renew([40, 60], 'one', 'lost', 0, 1).grant([1_000, 1_020], TWO),
    broken: ['capacity'],
  },
  {
    name: 'leases from before the limit was lowered',
    hand: roomy()
      .grant([20, 30], ONE)
      .grant([40, 50], TWO)
      .sync([60, 70], { a: { maxLeases: 1 } })
      .get([80, 90], 'one'),
    broken: [],
  },
  {
    name: 'a lease after the limit was lowered',
    hand: roomy()
      .grant([20, 30], ONE)
      .sync([40, 50], { a: { maxLeases: 1 } })
      .grant([60, 70], TWO),
    broken: ['capacity'],
  },
  {
    name: 'a lease of the machine that replaced the other',
    hand: one()
      .sync([40, 50], { a: { instance: 'a-m2' } })
      .grant([60, 70], TWO),
    broken: [],
  },
];

export const KEY_CASES: readonly Case[] = [
  {
    name: 'one lease for two requests',
    hand: one().grant([40, 50], ONE),
    broken: ['granted-twice'],
  },
  {
    name: 'one lease for two keys',
    hand: fleet()
      .grant([20, 30], ONE, KEYED)
      .grant([40, 50], ONE, { ...KEYED, key: 'other' }),
    broken: ['granted-twice'],
  },
  {
    name: 'one lease for a key that is repeated',
    hand: fleet().grant([20, 30], ONE, KEYED).grant([40, 50], ONE, KEYED),
    broken: [],
  },
  {
    name: 'another lease for a key whose lease lives',
    hand: roomy().grant([20, 30], ONE, KEYED).grant([40, 50], TWO, KEYED),
    broken: ['idempotency'],
  },
  {
    name: 'two leases for one key that is used twice at the same time',
    hand: roomy().grant([20, 40], ONE, KEYED).grant([21, 41], TWO, KEYED),
    broken: ['idempotency'],
  },
  {
    name: 'a refusal for a key whose lease lives',
    hand: fleet().grant([20, 30], ONE, KEYED).ask([40, 50], [409, 'no_match'], KEYED),
    broken: ['idempotency'],
  },
  {
    name: 'another lease for a key whose lease may have been released',
    hand: roomy().grant([20, 30], ONE, KEYED).release([35, 45], 'one').grant([40, 50], TWO, KEYED),
    broken: [],
  },
  {
    name: 'a lease for another body',
    hand: roomy().grant([20, 30], ONE, KEYED).grant([40, 50], TWO, OTHER),
    broken: ['idempotency'],
  },
  {
    name: 'a refusal of another body',
    hand: fleet().grant([20, 30], ONE, KEYED).ask([40, 50], [422, 'idempotency_mismatch'], OTHER),
    broken: [],
  },
  {
    name: 'a refusal of a body that is the only one',
    hand: fleet().ask([20, 30], 'lost', KEYED).ask([40, 50], [422, 'idempotency_mismatch'], KEYED),
    broken: ['idempotency'],
  },
];

export const TOKEN_CASES: readonly Case[] = [
  {
    name: 'a lower token for a later grant',
    hand: roomy()
      .grant([20, 30], { ...ONE, token: 7 })
      .grant([40, 50], { ...TWO, token: 6 }),
    broken: ['tokens'],
  },
  {
    name: 'a lower token for a grant at the same time',
    hand: roomy()
      .grant([20, 30], { ...ONE, token: 7 })
      .grant([25, 50], { ...TWO, token: 6 }),
    broken: [],
  },
  {
    name: 'a lower token for a grant that an earlier request without an answer may have made',
    hand: roomy()
      .ask([15, 22], 'lost', KEYED)
      .grant([20, 30], { ...ONE, token: 7 })
      .grant([40, 50], { ...TWO, token: 6 }, KEYED),
    broken: [],
  },
  {
    name: 'a token for two leases',
    hand: roomy()
      .grant([20, 50], ONE)
      .grant([25, 55], { ...TWO, token: 1 }),
    broken: ['tokens'],
  },
  {
    name: 'a token that changes',
    hand: one().get([40, 50], 'one', 200, { token: 9 }),
    broken: ['tokens'],
  },
];
