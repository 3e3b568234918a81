import { describe, expect, test } from 'vitest';
import {
  findOrphans,
  orphanKey,
  ownMachines,
  SIGHTINGS_MAX,
  selectDue,
  sightings,
} from '#agent/gc/compare.ts';
import type { Instance } from '#agent/providers/provider.ts';

const MINUTE_MS = 60_000;

function machine(fields: Partial<Instance> = {}): Instance {
  return {
    id: 'zones/a/one',
    uid: 'uid-1',
    installation: 'ours',
    state: 'Running',
    createdAtMs: 0,
    ...fields,
  };
}

const ids = (machines: readonly Instance[]) => machines.map(({ id }) => id);
/** Machines 0…count-1, the later the younger. */
const fleet = (count: number) =>
  Array.from({ length: count }, (_, nth) =>
    machine({ id: `m${nth}`, uid: `uid-${nth}`, createdAtMs: nth + 1 }),
  );
const seenOnce = (machines: readonly Instance[]) =>
  new Map(machines.map((each) => [orphanKey(each), 0]));

describe('own machines', () => {
  const elsewhere = { namespace: 'other', name: 'one' };
  const here = { namespace: 'crawl', name: 'one' };

  test.each<[string, Partial<Instance>, string | undefined, boolean]>([
    ['with the whole mark', {}, undefined, true],
    ['of another installation', { installation: 'theirs' }, undefined, false],
    ['without an installation', { installation: '' }, undefined, false],
    ['without a uid', { uid: '' }, undefined, false],
    ['without any mark', { uid: '', installation: '' }, undefined, false],
    ['made for a Proxy of any namespace', { proxy: elsewhere }, undefined, true],
    ['made for a Proxy of the known namespace', { proxy: here }, 'crawl', true],
    ['made for a Proxy of a namespace that is not known', { proxy: elsewhere }, 'crawl', false],
    ['that does not say for which Proxy', {}, 'crawl', true],
  ])('a machine %s', (_what, fields, namespace, expected) => {
    const scope = namespace === undefined ? {} : { namespace };
    const own = ownMachines([machine(fields)], { installation: 'ours', ...scope });
    expect(own).toHaveLength(expected ? 1 : 0);
  });

  test('an unmarked machine is not ours even when our id is empty', () => {
    expect(ownMachines([machine({ installation: '' })], { installation: '' })).toEqual([]);
  });
});

describe('orphans', () => {
  const nowMs = 100 * MINUTE_MS;
  const minAgeMs = 10 * MINUTE_MS;

  test.each<[string, Partial<Instance>, boolean]>([
    ['old and without a Proxy', { createdAtMs: nowMs - 11 * MINUTE_MS }, true],
    ['exactly of the minimum age', { createdAtMs: nowMs - minAgeMs }, true],
    ['a moment too young', { createdAtMs: nowMs - minAgeMs + 1 }, false],
    ['from the future, by a clock that is ahead', { createdAtMs: nowMs + 1 }, false],
    ['of unreadable age', { createdAtMs: 0 }, true],
    ['with a living Proxy', { uid: 'alive', createdAtMs: 1 }, false],
    ['stopped', { state: 'Stopped', createdAtMs: 1 }, true],
  ])('a machine %s', (_what, fields, expected) => {
    const at = { live: new Set(['alive']), nowMs, minAgeMs };
    expect(findOrphans([machine(fields)], at)).toHaveLength(expected ? 1 : 0);
  });

  test('come oldest first', () => {
    const at = { live: new Set<string>(), nowMs, minAgeMs };
    expect(ids(findOrphans(fleet(3).reverse(), at))).toEqual(['m0', 'm1', 'm2']);
  });
});

describe('what is due', () => {
  test('an orphan that is seen for the first time is not', () => {
    expect(selectDue(fleet(3), new Map(), 3)).toEqual([]);
  });

  test('another machine under the id of an earlier orphan is not', () => {
    const before = seenOnce([machine({ uid: 'earlier' })]);
    expect(selectDue([machine({ uid: 'later' })], before, 1)).toEqual([]);
  });

  test.each([
    [1, 1],
    [9, 1],
    [19, 1],
    [20, 2],
    [105, 10],
  ])('of %i own machines, all orphans, at most %i', (own, expected) => {
    const orphans = fleet(own);
    const due = selectDue(orphans, seenOnce(orphans), own);
    expect(due).toEqual(orphans.slice(0, expected));
  });

  test('one that was tried in vain comes after those that were not', () => {
    const orphans = fleet(3);
    const before = seenOnce(orphans);
    before.set(orphanKey(machine({ id: 'm0', uid: 'uid-0' })), 2);
    before.set(orphanKey(machine({ id: 'm1', uid: 'uid-1' })), 1);
    expect(ids(selectDue(orphans, before, 30))).toEqual(['m2', 'm1', 'm0']);
  });
});

describe('sightings', () => {
  test('keep the attempts of orphans, and forget who is none any more', () => {
    const [a, b, c] = fleet(3);
    if (!a || !b || !c) throw new Error('no fleet');
    const before = new Map([
      [orphanKey(a), 1],
      [orphanKey(b), 4],
    ]);
    expect(sightings([b, c], before)).toEqual(
      new Map([
        [orphanKey(b), 4],
        [orphanKey(c), 0],
      ]),
    );
  });

  test('are bounded: the oldest orphans are remembered', () => {
    const kept = sightings(fleet(SIGHTINGS_MAX + 5), new Map());
    expect(kept.size).toBe(SIGHTINGS_MAX);
    expect(kept.has(orphanKey(machine({ id: 'm0', uid: 'uid-0' })))).toBe(true);
  });
});
