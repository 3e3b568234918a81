import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '#deploy/local/control-plane/json.ts';
import { applyMergePatch } from '#deploy/local/control-plane/patch/merge-patch.ts';
import { PatchError } from '#deploy/local/control-plane/patch/patch-error.ts';

describe('a merge patch', () => {
  // The examples of RFC 7386, appendix A, whose documents are objects.
  it.each<[JsonObject, JsonObject, JsonObject]>([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('%j with %j is %j', (object, patch, expected) => {
    expect(applyMergePatch(object, patch)).toEqual(expected);
  });

  it.each<[JsonValue]>([[[]], ['x'], [null], [1]])('of %j is malformed', (patch) => {
    expect(() => applyMergePatch({}, patch)).toThrow(PatchError);
  });

  it('takes __proto__ for a name', () => {
    const patch: JsonObject = JSON.parse('{"__proto__":{"x":1},"a":{"__proto__":{"y":1}}}');
    const patched = applyMergePatch({ a: {} }, patch);
    expect(JSON.stringify(patched)).toBe('{"a":{"__proto__":{"y":1}},"__proto__":{"x":1}}');
    expect(Object.getPrototypeOf(patched)).toBe(Object.prototype);
    expect(applyMergePatch(patched, JSON.parse('{"__proto__":null}'))).toEqual({ a: patched.a });
  });
});
