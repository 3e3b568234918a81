import { describe, expect, test } from 'vitest';
import { type Cacheable, createObjectCache } from '#agent/kube/cache.ts';

interface Thing extends Cacheable {
  readonly note: string;
}

function thing(name: string, resourceVersion: string, note = '', uid = `uid-${name}`): Thing {
  return { metadata: { namespace: 'ns', name, uid, resourceVersion }, note };
}

const none: ReadonlySet<string> = new Set();

function filled(...objects: Thing[]) {
  const cache = createObjectCache<Thing>();
  cache.beginList();
  cache.replaceAll(objects, none);
  return cache;
}

describe('object cache', () => {
  test('a list tells what is new, what changed and what vanished', () => {
    const cache = filled(thing('same', '1'), thing('changed', '2'), thing('gone', '3'));
    cache.beginList();
    const changed = cache.replaceAll(
      [thing('same', '1'), thing('changed', '5'), thing('new', '6')],
      none,
    );
    expect(changed).toEqual(['ns/changed', 'ns/new', 'ns/gone']);
    expect(cache.size).toBe(3);
  });

  test('an object that nobody could parse keeps its last good version through a list', () => {
    const cache = filled(thing('a', '1', 'good'));
    cache.beginList();
    expect(cache.replaceAll([], new Set(['ns/a', 'ns/never-seen']))).toEqual([]);
    expect(cache.get('ns/a')?.note).toBe('good');
    expect(cache.get('ns/never-seen')).toBeUndefined();
  });

  test.each([
    ['9', '10', 'numbers compare by value, not by text'],
    ['10', '11', 'the next number'],
    ['99999999999999999998', '99999999999999999999', 'beyond what a double holds'],
  ])('an event of version %s does not undo version %s (%s)', (older, newer) => {
    const cache = filled(thing('a', newer, 'newer'));
    expect(cache.upsert(thing('a', older, 'older'))).toEqual([]);
    expect(cache.get('ns/a')?.note).toBe('newer');
  });

  test('versions that are no numbers cannot be compared, so the last one seen stays', () => {
    const cache = filled(thing('a', 'zz', 'before'));
    expect(cache.upsert(thing('a', 'aa', 'after'))).toEqual(['ns/a']);
    expect(cache.get('ns/a')?.note).toBe('after');
  });

  test('an object that was made anew under the name wins whatever its version', () => {
    const cache = filled(thing('a', '50', 'first'));
    expect(cache.upsert(thing('a', '7', 'second', 'other-uid'))).toEqual(['ns/a']);
    expect(cache.get('ns/a')?.note).toBe('second');
  });

  test('the answer to a write is seen before the watch brings it, and the watch cannot undo it', () => {
    const cache = filled(thing('a', '5', 'old'));
    cache.observe(thing('a', '8', 'written'));
    expect(cache.get('ns/a')?.note).toBe('written');
    cache.upsert(thing('a', '7', 'in between'));
    expect(cache.get('ns/a')?.note).toBe('written');
  });

  test('the answer to a write brings nothing back that was deleted meanwhile', () => {
    const cache = filled(thing('a', '5'));
    cache.remove('ns/a');
    cache.observe(thing('a', '6'));
    expect(cache.get('ns/a')).toBeUndefined();
    cache.upsert(thing('a', '9', 'successor', 'other-uid'));
    cache.observe(thing('a', '10'));
    expect(cache.get('ns/a')?.note).toBe('successor');
  });

  test('a write during a list survives the list, which was read before it', () => {
    const cache = filled(thing('a', '5', 'old'), thing('b', '6'));
    cache.beginList();
    cache.observe(thing('a', '8', 'written'));
    cache.observe(thing('b', '9'));
    cache.replaceAll([thing('a', '5', 'old')], none);
    expect(cache.get('ns/a')?.note).toBe('written');
    expect(cache.get('ns/b')).toBeUndefined();
  });

  test('a list begun after the write is the truth, even when versions went back', () => {
    const cache = filled(thing('a', '500', 'before the restore'));
    cache.observe(thing('a', '501', 'written before the restore'));
    cache.beginList();
    cache.replaceAll([thing('a', '20', 'restored')], none);
    expect(cache.get('ns/a')?.note).toBe('restored');
  });
});
