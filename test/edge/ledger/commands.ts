/** Random steps in the life of a ledger. */
import fc from 'fast-check';
import type { ReportResult } from '#shared/wire/lease.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { entry } from './harness.ts';

export const NAMES = ['a', 'b', 'c', 'd'];
export const TARGETS = [undefined, 't', 'u'];
const SECONDS = [1, 14, 30, 89, 90, 299, 300, 700];

const entries: fc.Arbitrary<InventoryEntry> = fc
  .record({
    name: fc.constantFrom(...NAMES),
    instance: fc.constantFrom('1', '1', '1', '2'),
    maxLeases: fc.integer({ min: 1, max: 3 }),
    healthy: fc.constantFrom(true, true, true, true, false, null),
    egressIP: fc.constantFrom(undefined, undefined, '192.0.2.1', '192.0.2.2'),
    latencyMillis: fc.constantFrom(undefined, 10, 20, 30),
    attributes: fc.constantFrom({}, { region: 'eu' }, { region: 'eu', tier: '1' }),
    leasable: fc.constantFrom(true, true, true, false),
    draining: fc.constantFrom(false, false, false, true),
  })
  .map(({ name, egressIP, latencyMillis, ...rest }) =>
    entry(name, {
      ...rest,
      ...(egressIP === undefined ? {} : { egressIP }),
      ...(latencyMillis === undefined ? {} : { latencyMillis }),
    }),
  );

/** Picks one of the ids made so far, by its place. */
const place = fc.nat(30);

const acquire = fc.record({
  do: fc.constant('acquire' as const),
  selector: fc.constantFrom({}, {}, { region: 'eu' }, { region: 'eu', tier: '1' }, { no: 'x' }),
  target: fc.constantFrom(...TARGETS),
  ttlSeconds: fc.constantFrom(1, 60, 300, 3600),
  strategy: fc.constantFrom('least-loaded' as const, 'least-loaded' as const, 'spread' as const),
  sessionKey: fc.constantFrom(undefined, undefined, undefined, 's1', 's2'),
  waitSeconds: fc.constantFrom(undefined, undefined, 5, 30),
  key: fc.constantFrom(undefined, undefined, undefined, 'k1', 'k2'),
  client: fc.constantFrom('many', 'many', 'few'),
});

export const commands = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('full' as const),
      entries: fc.array(entries, { maxLength: 5 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('upsert' as const), entry: entries }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('remove' as const), name: fc.constantFrom(...NAMES) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('heartbeat' as const) }) },
  { weight: 10, arbitrary: acquire },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('release' as const), place }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('renew' as const),
      place,
      ttlSeconds: fc.constantFrom(1, 300, 3600),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('report' as const),
      place,
      result: fc.constantFrom<ReportResult>('ok', 'ok', 'rate_limited', 'banned'),
      target: fc.constantFrom(...TARGETS),
      retryAfterSeconds: fc.constantFrom(undefined, 1, 700),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      seconds: fc.constantFrom(...SECONDS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('restart' as const), keepsQueue: fc.boolean() }),
  },
);

export type Command = typeof commands extends fc.Arbitrary<infer T> ? T : never;
export type CommandOf<Do extends Command['do']> = Extract<Command, { do: Do }>;
