import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonValue } from '#deploy/local/control-plane/json.ts';
import { compileJsonPath } from '#deploy/local/control-plane/printing/json-path.ts';

const proxy = {
  metadata: { name: 'a', labels: { 'example.com/tier': 'gold', 'x]y': 'odd' } },
  status: {
    conditions: [
      { type: 'Healthy', status: 'False', reason: 'Down', n: 2 },
      { type: 'Ready', status: 'True', reason: 'Up', n: 3 },
    ],
    ports: [1, 2, 3, 4],
  },
};

describe('a JSON path', () => {
  it.each<[string, JsonValue[]]>([
    ['.metadata.name', ['a']],
    ['{.metadata.name}', ['a']],
    ['$.metadata.name', ['a']],
    ['metadata.name', ['a']],
    ["['metadata']['name']", ['a']],
    ['.metadata["name"]', ['a']],
    [String.raw`.metadata.labels.example\.com/tier`, ['gold']],
    ["['metadata']['labels']['x]y']", ['odd']],
    ['.status.conditions[?(@.type=="Ready")].reason', ['Up']],
    [".status.conditions[?(@.type=='Ready')].reason", ['Up']],
    ['.status.conditions[?(@.type == "Ready")].status', ['True']],
    ['.status.conditions[?(@.type!="Ready")].reason', ['Down']],
    ['.status.conditions[?(@.n>2)].type', ['Ready']],
    ['.status.conditions[?(@.n<=2)].type', ['Healthy']],
    ['.status.conditions[?(@.nope)].type', []],
    ['.status.conditions[?(@.reason)].type', ['Healthy', 'Ready']],
    ['.status.conditions[*].type', ['Healthy', 'Ready']],
    ['.status.conditions[0].type', ['Healthy']],
    ['.status.conditions[-1].type', ['Ready']],
    ['.status.conditions[7].type', []],
    ['.status.ports[1:3]', [2, 3]],
    ['.status.ports[::2]', [1, 3]],
    ['.status.ports[0,3]', [1, 4]],
    ["['metadata','status']['name','ports']", ['a', [1, 2, 3, 4]]],
    ['..reason', ['Down', 'Up']],
    ['.status.missing.deeper', []],
    ['.constructor', []],
    ['.metadata.__proto__', []],
  ])('%s', (path, expected) => {
    expect(compileJsonPath(path)(proxy)).toEqual(expected);
  });

  it.each([
    ['.a['],
    ['.a[b]'],
    ['.a[?(@.b==)]'],
    ['.a[?(process.exit())]'],
    ['.a['.repeat(3000)],
    ['.a.'],
    ['.a[::0]'],
  ])('%j is refused with an error', (path) => {
    expect(() => compileJsonPath(path)).toThrow(Error);
  });

  it.each(['..*..*..*..*', `${'[0,0,0,0,0,0,0,0,0,0]'.repeat(8)}`])(
    'of steps that multiply what they find, such as %s, finds no more than a bound',
    (path) => {
      const nested = (depth: number): JsonValue =>
        depth === 0 ? 1 : new Array(10).fill(nested(depth - 1));
      expect(compileJsonPath(path)(nested(8)).length).toBeLessThanOrEqual(100_000);
    },
  );

  it('of any text is either refused or finds something without a crash', () => {
    const piece = fc.constantFrom(
      '.',
      '[',
      ']',
      '?(',
      ')',
      '@',
      'a',
      "'",
      '"',
      '*',
      '..',
      '0',
      '\\',
      '==',
      '{',
      '}',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        let path: (root: JsonValue) => JsonValue[];
        try {
          path = compileJsonPath(pieces.join(''));
        } catch (error) {
          expect(error).toBeInstanceOf(Error);
          return;
        }
        expect(Array.isArray(path(proxy))).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});
