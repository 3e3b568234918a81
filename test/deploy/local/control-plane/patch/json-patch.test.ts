import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '#deploy/local/control-plane/json.ts';
import { applyJsonPatch } from '#deploy/local/control-plane/patch/json-patch.ts';
import { PatchError } from '#deploy/local/control-plane/patch/patch-error.ts';

function failure(object: JsonObject, patch: JsonValue): PatchError {
  try {
    applyJsonPatch(object, patch);
  } catch (error) {
    if (error instanceof PatchError) return error;
    throw error;
  }
  throw new Error('the patch was applied');
}

describe('a JSON patch', () => {
  it.each<[string, JsonObject, JsonValue[], JsonObject]>([
    ['adds a member', { a: 1 }, [{ op: 'add', path: '/b', value: [1] }], { a: 1, b: [1] }],
    ['replaces by adding', { a: 1 }, [{ op: 'add', path: '/a', value: null }], { a: null }],
    [
      'inserts into a list',
      { a: [1, 3] },
      [{ op: 'add', path: '/a/1', value: 2 }],
      { a: [1, 2, 3] },
    ],
    [
      'appends at the index of the end',
      { a: [1] },
      [{ op: 'add', path: '/a/1', value: 2 }],
      { a: [1, 2] },
    ],
    ['appends with a dash', { a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
    ['removes a member', { a: 1, b: 2 }, [{ op: 'remove', path: '/a' }], { b: 2 }],
    ['removes an item', { a: [1, 2] }, [{ op: 'remove', path: '/a/0' }], { a: [2] }],
    ['replaces an item', { a: [1, 2] }, [{ op: 'replace', path: '/a/1', value: 9 }], { a: [1, 9] }],
    ['replaces the document', { a: 1 }, [{ op: 'replace', path: '', value: { b: 2 } }], { b: 2 }],
    ['moves', { a: 1 }, [{ op: 'move', from: '/a', path: '/b' }], { b: 1 }],
    [
      'copies without sharing',
      { a: { x: 1 } },
      [
        { op: 'copy', from: '/a', path: '/b' },
        { op: 'replace', path: '/b/x', value: 2 },
      ],
      { a: { x: 1 }, b: { x: 2 } },
    ],
    [
      'unescapes pointers',
      { 'a/b': 1, 'c~d': 1 },
      [
        { op: 'remove', path: '/a~1b' },
        { op: 'remove', path: '/c~0d' },
      ],
      {},
    ],
    [
      'tests deep equality',
      { a: { x: 1, y: [1] } },
      [{ op: 'test', path: '/a', value: { y: [1], x: 1 } }],
      { a: { x: 1, y: [1] } },
    ],
    ['finds null where there is nothing', {}, [{ op: 'test', path: '/a', value: null }], {}],
  ])('%s', (_name, object, patch, expected) => {
    const before = structuredClone(object);
    expect(applyJsonPatch(object, patch)).toEqual(expected);
    expect(object).toEqual(before);
  });

  it.each<[string, JsonValue]>([
    ['that is no list', { op: 'add' }],
    ['with an operation that is no object', [1]],
    ['with an unknown operation', [{ op: 'merge', path: '/a' }]],
    ['without a path', [{ op: 'remove' }]],
    ['with a path that does not begin with a slash', [{ op: 'remove', path: 'a' }]],
    ['that adds no value', [{ op: 'add', path: '/a' }]],
    ['that moves from nowhere', [{ op: 'move', path: '/a' }]],
  ])('%s is malformed', (_name, patch) => {
    expect(failure({ a: 1 }, patch)).toMatchObject({ kind: 'malformed', code: 400 });
  });

  it.each<[string, JsonObject]>([
    ['removes what is not there', { op: 'remove', path: '/x' }],
    ['replaces what is not there', { op: 'replace', path: '/x', value: 1 }],
    ['adds below what is not there', { op: 'add', path: '/x/y', value: 1 }],
    ['adds below a scalar', { op: 'add', path: '/a/b', value: 1 }],
    ['adds past the end of a list', { op: 'add', path: '/l/3', value: 1 }],
    ['uses no number as an index', { op: 'add', path: '/l/01', value: 1 }],
    ['removes the dash', { op: 'remove', path: '/l/-' }],
    ['moves a value into itself', { op: 'move', from: '/o', path: '/o/x' }],
    ['removes the document', { op: 'remove', path: '' }],
    ['makes the document a list', { op: 'replace', path: '', value: [] }],
    ['tests for another value', { op: 'test', path: '/a', value: 2 }],
    ['reaches for the prototype', { op: 'add', path: '/__proto__/x', value: 1 }],
    ['reaches for a constructor', { op: 'remove', path: '/constructor' }],
  ])('that %s does not apply', (_name, operation) => {
    const object = { a: 1, l: [1, 2], o: {} };
    expect(failure(object, [operation])).toMatchObject({ kind: 'unprocessable', code: 422 });
  });

  it('of too many operations is too large', () => {
    const patch = (count: number) => new Array(count).fill({ op: 'test', path: '/a', value: 1 });
    expect(applyJsonPatch({ a: 1 }, patch(10_000))).toEqual({ a: 1 });
    expect(failure({ a: 1 }, patch(10_001))).toMatchObject({ kind: 'too-large', code: 413 });
  });

  it('that copies its own copies ends before it fills the memory', () => {
    const copyTo = (_unset: unknown, index: number) => ({
      op: 'copy',
      from: '',
      path: `/${index}`,
    });
    const doubling = Array.from({ length: 40 }, copyTo);
    expect(failure({ a: 'x'.repeat(100) }, doubling)).toMatchObject({
      kind: 'unprocessable',
      message: expect.stringContaining('exceeding the limit 3145728'),
    });
  });

  it('leaves the object as it was when its last operation fails', () => {
    const object = { a: 1 };
    failure(object, [
      { op: 'remove', path: '/a' },
      { op: 'remove', path: '/a' },
    ]);
    expect(object).toEqual({ a: 1 });
  });

  it('takes __proto__ for a name', () => {
    const patched = applyJsonPatch({}, [{ op: 'add', path: '/__proto__', value: { x: 1 } }]);
    expect(JSON.stringify(patched)).toBe('{"__proto__":{"x":1}}');
    expect(Object.getPrototypeOf(patched)).toBe(Object.prototype);
  });
});
