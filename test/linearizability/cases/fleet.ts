/** What the agents say of the fleet, and what is granted and shown of it. */
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { type Case, fleet, ONE, one, TWO } from './case.ts';

const afterwards = (entry: Partial<InventoryEntry> | null) =>
  fleet().sync([20, 30], { a: entry }).grant([40, 50], ONE);
const meanwhile = (entry: Partial<InventoryEntry> | null) =>
  fleet().grant([20, 50], ONE).sync([25, 35], { a: entry });

export const OFFER_CASES: readonly Case[] = [
  { name: 'a proxy that is not healthy', hand: afterwards({ healthy: false }), broken: ['offer'] },
  { name: 'a proxy that is not probed', hand: afterwards({ healthy: null }), broken: ['offer'] },
  { name: 'a proxy that is cordoned', hand: afterwards({ leasable: false }), broken: ['offer'] },
  { name: 'a proxy that drains', hand: afterwards({ draining: true }), broken: ['offer'] },
  { name: 'a proxy that was removed', hand: afterwards(null), broken: ['offer', 'view'] },
  { name: 'a proxy that is being cordoned', hand: meanwhile({ leasable: false }), broken: [] },
  {
    name: 'a machine that is being replaced',
    hand: meanwhile({ instance: 'a-m2' }),
    broken: [],
  },
  {
    name: 'a proxy that may be cordoned, by a sync without an answer',
    hand: fleet()
      .sync([20, 30], { a: { leasable: false } }, 'lost')
      .grant([40, 50], ONE),
    broken: [],
  },
  {
    name: 'a proxy that was declared by nothing but a refused sync',
    hand: fleet({ b: {} }).sync([20, 30], { a: {} }, [409, 'resync_required']).grant([40, 50], ONE),
    broken: ['offer'],
  },
  {
    name: 'a proxy that does not match',
    hand: fleet({ a: { attributes: { region: 'eu' } } }).grant([20, 30], ONE, {
      request: { selector: { region: 'us' } },
    }),
    broken: ['offer'],
  },
  {
    name: 'a proxy that matches',
    hand: fleet({ a: { attributes: { region: 'us' } } }).grant([20, 30], ONE, {
      request: { selector: { region: 'us' } },
    }),
    broken: [],
  },
];

export const VIEW_CASES: readonly Case[] = [
  {
    name: 'a port that the proxy has no more',
    hand: one()
      .sync([40, 50], { a: { port: 4_000 } })
      .get([60, 70], 'one'),
    broken: ['view'],
  },
  {
    name: 'a port that it may still have',
    hand: one()
      .sync([40, 65], { a: { port: 4_000 } })
      .get([60, 70], 'one'),
    broken: [],
  },
  {
    name: 'a target that changes',
    hand: one().get([40, 50], 'one', 200, { target: 'one.example' }),
    broken: ['view'],
  },
];

export const COUNT_CASES: readonly Case[] = [
  {
    name: 'a lease that the agent is not told of',
    hand: one().sync([40, 50], { a: {} }, 200, {}),
    broken: ['active-count'],
  },
  {
    name: 'a lease that may be released by then',
    hand: one().release([35, 60], 'one').sync([40, 50], { a: {} }, 200, {}),
    broken: [],
  },
  {
    name: 'a lease that the agent is told of',
    hand: one().sync([40, 50], { a: {} }, 200, { a: 1 }),
    broken: [],
  },
  {
    name: 'one lease of two that the agent is told of',
    hand: fleet({ a: { maxLeases: 2 } })
      .grant([20, 30], ONE)
      .grant([40, 50], TWO)
      .sync([60, 70], { a: {} }, 200, { a: 1 }),
    broken: ['active-count'],
  },
];
