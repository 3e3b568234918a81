import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '#deploy/local/control-plane/json.ts';
import { type Change, ObjectStore } from '#deploy/local/control-plane/storage/object-store.ts';

const ref = (name: string, namespace = 'default') => ({ resource: 'things', namespace, name });
const thing = (name: string, value = 0): JsonObject => ({ metadata: { name }, value });

describe('the object store', () => {
  it('stamps each write with the next revision and freezes what it keeps', () => {
    const store = new ObjectStore();
    expect(store.put(ref('a'), thing('a'))).toMatchObject({ metadata: { resourceVersion: '1' } });
    const second = store.put(ref('a'), thing('a', 1));
    expect(second).toMatchObject({ metadata: { resourceVersion: '2' }, value: 1 });
    expect(Object.isFrozen(second['metadata'])).toBe(true);
    expect(store.remove(ref('a'))).toMatchObject({ metadata: { resourceVersion: '3' } });
    expect(store.get(ref('a'))).toBeUndefined();
    expect(() => store.remove(ref('a'))).toThrow('not stored');
  });

  it('lists by namespace and name', () => {
    const store = new ObjectStore();
    for (const [namespace, name] of [
      ['b', 'x'],
      ['a', 'z'],
      ['a', 'y'],
    ] as const) {
      store.put(ref(name, namespace), thing(name));
    }
    expect(store.list('things')).toMatchObject([thing('y'), thing('z'), thing('x')]);
    expect(store.list('things', 'a')).toHaveLength(2);
    expect(store.count('things', 'b')).toBe(1);
  });

  it('tells changes in order, also those that a listener makes', () => {
    const store = new ObjectStore();
    const told: string[] = [];
    store.subscribe(({ ref: { name } }) => {
      if (name === 'first') store.put(ref('second'), thing('second'));
    });
    store.subscribe((change: Change) => told.push(`${change.type} ${change.ref.name}`));
    store.put(ref('first'), thing('first'));
    expect(told).toEqual(['ADDED first', 'ADDED second']);
  });

  it('tells every listener every change, whatever another of them fails on', () => {
    const store = new ObjectStore();
    const told: string[] = [];
    store.subscribe(({ ref: { name } }) => {
      if (name === 'first') store.put(ref('second'), thing('second'));
      throw new Error(`cannot take ${name}`);
    });
    store.subscribe((change: Change) => told.push(change.ref.name));
    expect(() => store.put(ref('first'), thing('first'))).toThrow('cannot take first');
    expect(told).toEqual(['first', 'second']);
    expect(store.get(ref('first'))).toBeDefined();
  });

  it('forgets what falls out of its history', () => {
    const store = new ObjectStore({ historyMax: 10 });
    for (let turn = 0; turn < 25; turn++) store.put(ref('a'), thing('a', turn));
    expect(store.compactedRevision).toBeGreaterThan(0);
    expect(store.changesSince(store.compactedRevision - 1)).toBeUndefined();
    expect(store.changesSince(store.compactedRevision)?.length).toBe(25 - store.compactedRevision);
  });

  it('shows every earlier state until it is compacted', () => {
    const step = fc.record({ name: fc.constantFrom('a', 'b', 'c'), remove: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const store = new ObjectStore();
        const states = new Map([[0, store.list('things')]]);
        steps.forEach(({ name, remove }, value) => {
          if (remove && store.get(ref(name)) !== undefined) store.remove(ref(name));
          else store.put(ref(name), thing(name, value));
          states.set(store.revision, store.list('things'));
        });
        for (const [revision, state] of states) {
          expect(store.listAt('things', undefined, revision)).toEqual(state);
        }
        store.compact();
        if (store.revision > 0) expect(store.listAt('things', undefined, 0)).toBeUndefined();
      }),
    );
  });
});
