/** Leases that are lost, or come back, or are told of in a way that does not fit together. */
import { type Case, fleet, ONE, one } from './case.ts';

const UNKNOWN = [404, 'unknown_lease'] as const;
const EXPIRED = [410, 'lease_expired'] as const;
const GONE = [410, 'proxy_gone'] as const;

export const LOST_CASES: readonly Case[] = [
  {
    name: 'a lease that nobody knows',
    hand: one().get([40, 50], 'one', UNKNOWN),
    broken: ['lost-lease', 'order'],
  },
  {
    name: 'a lease that has expired before its time',
    hand: one().renew([40, 50], 'one', EXPIRED),
    broken: ['lost-lease', 'order'],
  },
  {
    name: 'a lease whose proxy is said to be gone, and is not',
    hand: one().renew([40, 50], 'one', GONE),
    broken: ['lost-lease', 'order'],
  },
  {
    name: 'a lease whose proxy may be gone',
    hand: one().sync([35, 60], { a: null }, 'lost').renew([40, 50], 'one', GONE),
    broken: [],
  },
  {
    name: 'a lease that another renewal must have kept',
    hand: fleet()
      .grant([20, 30], { ...ONE, untilMs: 100 })
      .renew([40, 50], 'one', 200, 1_045)
      .renew([200, 210], 'one', EXPIRED),
    broken: ['lost-lease', 'order'],
  },
  {
    name: 'a lease that is looked at when its time is nearly over',
    hand: one().get([1_990, 2_005], 'one', UNKNOWN),
    broken: [],
  },
  {
    name: 'a report that comes late, but not too late',
    hand: one().report([3_900, 3_950], 'one', { result: 'ok' }, UNKNOWN),
    broken: ['lost-lease', 'order'],
  },
  {
    name: 'a report that may be too late',
    hand: one().report([3_950, 4_050], 'one', { result: 'ok' }, UNKNOWN),
    broken: [],
  },
];

export const REVIVED_CASES: readonly Case[] = [
  {
    name: 'a renewal after the time is over',
    hand: one().renew([2_010, 2_020], 'one', 200, 3_015),
    broken: ['revived-lease', 'order'],
  },
  {
    name: 'a renewal that may have come in time',
    hand: one().renew([1_990, 2_020], 'one', 200, 2_995),
    broken: [],
  },
  {
    name: 'a renewal when one without an answer may have kept the lease',
    hand: one().renew([1_500, 1_510], 'one', 'lost').renew([2_010, 2_020], 'one', 200, 3_015),
    broken: [],
  },
  {
    name: 'a look at a released lease',
    hand: one().release([40, 50], 'one').get([60, 70], 'one'),
    broken: ['revived-lease', 'order'],
  },
  {
    name: 'a released lease that is said to have expired',
    hand: one().release([40, 50], 'one').renew([60, 70], 'one', EXPIRED),
    broken: ['revived-lease', 'order'],
  },
  {
    name: 'a report on a released lease',
    hand: one().release([40, 50], 'one').report([60, 70], 'one', { result: 'ok' }),
    broken: ['revived-lease', 'order'],
  },
  {
    name: 'a look at a lease whose machine was replaced',
    hand: one()
      .sync([40, 50], { a: { instance: 'a-m2' } })
      .get([60, 70], 'one'),
    broken: ['revived-lease', 'order', 'view'],
  },
  {
    name: 'a report on a lease that is long forgotten',
    hand: one().report([4_010, 4_020], 'one', { result: 'ok' }),
    broken: ['revived-lease', 'order'],
  },
];

export const ORDER_CASES: readonly Case[] = [
  {
    name: 'a lease that is there again while its release is on its way',
    hand: one().release([40, 200], 'one').get([50, 60], 'one', UNKNOWN).get([70, 80], 'one'),
    broken: ['order'],
  },
  {
    name: 'a lease that is gone while its release is on its way',
    hand: one().release([40, 200], 'one').get([50, 60], 'one').get([70, 80], 'one', UNKNOWN),
    broken: [],
  },
  {
    name: 'an older time after a newer one was seen',
    hand: one()
      .renew([40, 200], 'one', 200, 3_000)
      .get([50, 60], 'one', 200, { expiresMs: 3_000 })
      .get([70, 80], 'one', 200, { expiresMs: 2_000 }),
    broken: ['order'],
  },
  {
    name: 'a time that nobody set',
    hand: one().get([40, 50], 'one', 200, { expiresMs: 2_500 }),
    broken: ['order'],
  },
  {
    name: 'a time that a renewal without an answer may have set',
    hand: one()
      .renew([40, 60], 'one', 'lost', 0, 2)
      .get([70, 80], 'one', 200, { expiresMs: 2_050 }),
    broken: [],
  },
  {
    name: 'a time that it cannot have set any more',
    hand: one()
      .renew([40, 60], 'one', 'lost', 0, 2)
      .get([70, 80], 'one', 200, { expiresMs: 2_070 }),
    broken: ['order'],
  },
  {
    name: 'a release without an answer that must have happened, and cannot have',
    hand: one()
      .release([40, 300], 'one', 'lost')
      .get([50, 60], 'one', UNKNOWN)
      .renew([70, 80], 'one', 200, 2_500),
    broken: ['order'],
  },
];
