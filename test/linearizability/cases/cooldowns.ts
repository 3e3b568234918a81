/** Grants of what should rest. */
import type { ReportRequest } from '#shared/wire/lease.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import type { Hand } from '../hand.ts';
import type { History } from '../history.ts';
import { type Case, fleet, ONE, TWO } from './case.ts';

const BANNED: ReportRequest = { result: 'banned' };
const forTarget = (target: string) => ({ request: { target } });

/** Two proxies behind one address; `one` is a lease of the first, for one.example. */
function shared(settings: Partial<History> = {}, b: Partial<InventoryEntry> = {}): Hand {
  const address = { egressIP: '192.0.2.1' };
  return fleet(
    { a: { ...address, maxLeases: 9 }, b: { ...address, maxLeases: 9, ...b } },
    settings,
  ).grant([20, 30], ONE, forTarget('one.example'));
}

const OF_B = { ...TWO, uid: 'b', untilMs: 9_000 };

export const COOLDOWN_CASES: readonly Case[] = [
  {
    name: 'the proxy itself',
    hand: shared()
      .report([40, 50], 'one', BANNED)
      .grant([60, 70], { ...OF_B, uid: 'a' }, forTarget('one.example')),
    broken: ['cooldown'],
  },
  {
    name: 'another proxy behind the address',
    hand: shared()
      .report([40, 50], 'one', BANNED)
      .grant([2_000, 2_030], OF_B, forTarget('one.example')),
    broken: ['cooldown'],
  },
  {
    name: 'at the same time as the report',
    hand: shared().report([40, 50], 'one', BANNED).grant([45, 70], OF_B, forTarget('one.example')),
    broken: [],
  },
  {
    name: 'when the cooldown may be over',
    hand: shared()
      .report([40, 50], 'one', BANNED)
      .grant([2_000, 2_045], OF_B, forTarget('one.example')),
    broken: [],
  },
  {
    name: 'while it is as long as the target asked for',
    hand: shared()
      .report([40, 50], 'one', { result: 'rate_limited', retryAfterSeconds: 5 })
      .grant([5_000, 5_030], OF_B, forTarget('one.example')),
    broken: ['cooldown'],
  },
  {
    name: 'beyond the longest cooldown that there is',
    hand: shared()
      .report([40, 50], 'one', { result: 'rate_limited', retryAfterSeconds: 60 })
      .grant([8_050, 8_060], OF_B, forTarget('one.example')),
    broken: [],
  },
  {
    name: 'for another target',
    hand: shared().report([40, 50], 'one', BANNED).grant([60, 70], OF_B, forTarget('two.example')),
    broken: [],
  },
  {
    name: 'for the target that the report names',
    hand: shared()
      .report([40, 50], 'one', { ...BANNED, target: 'two.example' })
      .grant([60, 70], OF_B, forTarget('two.example')),
    broken: ['cooldown'],
  },
  {
    name: 'for any target, when nobody named one',
    hand: fleet({ a: { egressIP: '192.0.2.1', maxLeases: 9 } })
      .grant([20, 30], ONE)
      .report([40, 50], 'one', BANNED)
      .grant([60, 70], TWO, forTarget('two.example')),
    broken: ['cooldown'],
  },
  {
    name: 'behind another address',
    hand: shared({}, { egressIP: '192.0.2.2' })
      .report([40, 50], 'one', BANNED)
      .grant([60, 70], OF_B, forTarget('one.example')),
    broken: [],
  },
  {
    name: 'a machine whose address nobody knows',
    hand: fleet({ a: { maxLeases: 9 } })
      .grant([20, 30], ONE)
      .report([40, 50], 'one', BANNED)
      .grant([60, 70], TWO),
    broken: ['cooldown'],
  },
  {
    name: 'an address that the proxy may have lost before the report',
    hand: shared()
      .sync([38, 60], { a: { egressIP: '192.0.2.9' } })
      .report([40, 50], 'one', BANNED)
      .grant([70, 80], OF_B, forTarget('one.example')),
    broken: [],
  },
  {
    name: 'after a report of the same lease that counted, and is over',
    hand: shared()
      .report([40, 50], 'one', BANNED)
      .report([1_500, 1_510], 'one', BANNED)
      .grant([2_050, 2_060], OF_B, forTarget('one.example')),
    broken: [],
  },
  {
    name: 'a report without an answer',
    hand: shared()
      .report([40, 50], 'one', BANNED, 'lost')
      .grant([60, 70], OF_B, forTarget('one.example')),
    broken: [],
  },
  {
    name: 'another shard that had no second to hear of it',
    hand: shared({ shards: 4 })
      .report([40, 50], 'one', BANNED)
      .grant([1_040, 1_049], OF_B, forTarget('one.example')),
    broken: [],
  },
  {
    name: 'another shard that had it',
    hand: shared({ shards: 4 })
      .report([40, 50], 'one', BANNED)
      .grant([1_060, 1_070], OF_B, forTarget('one.example')),
    broken: ['cooldown'],
  },
];
