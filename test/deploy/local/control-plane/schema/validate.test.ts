import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '#deploy/local/control-plane/json.ts';
import { renderFieldError } from '#deploy/local/control-plane/schema/field-error.ts';
import { compileResourceSchema } from '#deploy/local/control-plane/schema/resource-schema.ts';

/** Errors of `{spec: {a: value}}` under a schema for `a`. */
function errors(a: JsonObject, value: JsonValue, old?: JsonValue): string[] {
  const schema = compileResourceSchema({
    type: 'object',
    properties: { spec: { type: 'object', properties: { a } } },
  });
  const before = old === undefined ? undefined : { spec: { a: old } };
  return schema.validate({ spec: { a: value } }, before).map(renderFieldError);
}

const byKey = (key: string): JsonObject => ({
  type: 'array',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': [key],
  items: { type: 'object', properties: { [key]: { type: 'string' }, n: { type: 'integer' } } },
});

describe('structural validation', () => {
  it.each<[string, JsonObject, JsonValue, string[]]>([
    [
      'a string for an integer',
      { type: 'integer' },
      'x',
      ['spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"'],
    ],
    [
      'a fraction for an integer',
      { type: 'integer' },
      1.5,
      ['spec.a: Invalid value: "number": spec.a in body must be of type integer: "number"'],
    ],
    ['an integer for a number', { type: 'number' }, 2, []],
    [
      'null where it is not nullable',
      { type: 'string' },
      null,
      ['spec.a: Invalid value: "null": spec.a in body must be of type string: "null"'],
    ],
    ['null where it is nullable', { type: 'string', nullable: true, minLength: 1 }, null, []],
    [
      'a list for an object',
      { type: 'object' },
      [],
      ['spec.a: Invalid value: "array": spec.a in body must be of type object: "array"'],
    ],
    ['an int-or-string', { 'x-kubernetes-int-or-string': true }, '50%', []],
    [
      'neither int nor string',
      { 'x-kubernetes-int-or-string': true },
      true,
      [
        'spec.a: Invalid value: "boolean": spec.a in body must be of type integer,string: "boolean"',
      ],
    ],
    [
      'a number below the minimum',
      { type: 'integer', minimum: 1 },
      0,
      ['spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1'],
    ],
    [
      'a number above the maximum',
      { type: 'integer', maximum: 9 },
      10,
      ['spec.a: Invalid value: 10: spec.a in body should be less than or equal to 9'],
    ],
    [
      'a number at an exclusive bound',
      { type: 'integer', minimum: 1, exclusiveMinimum: true, maximum: 1, exclusiveMaximum: true },
      1,
      [
        'spec.a: Invalid value: 1: spec.a in body should be less than 1',
        'spec.a: Invalid value: 1: spec.a in body should be greater than 1',
      ],
    ],
    [
      'an int32 out of range',
      { type: 'integer', format: 'int32' },
      2 ** 31,
      [
        'spec.a: Invalid value: 2147483648: spec.a in body should be less than or equal to 2147483647',
      ],
    ],
    [
      'no multiple',
      { type: 'integer', multipleOf: 2 },
      3,
      ['spec.a: Invalid value: 3: spec.a in body should be a multiple of 2'],
    ],
    [
      'a string that is too long, in characters',
      { type: 'string', maxLength: 2 },
      'abc',
      ['spec.a: Too long: may not be more than 2 bytes'],
    ],
    ['characters outside the BMP count once', { type: 'string', maxLength: 1 }, '🦑', []],
    [
      'a string that is too short',
      { type: 'string', minLength: 1 },
      '',
      ['spec.a: Invalid value: "": spec.a in body should be at least 1 chars long'],
    ],
    [
      'a string off the pattern',
      { type: 'string', pattern: '^a+$' },
      'b',
      [`spec.a: Invalid value: "b": spec.a in body should match '^a+$'`],
    ],
    [
      'no date-time',
      { type: 'string', format: 'date-time' },
      '2026-02-30T00:00:00Z',
      [
        'spec.a: Invalid value: "2026-02-30T00:00:00Z": ' +
          'spec.a in body must be of type date-time: "2026-02-30T00:00:00Z"',
      ],
    ],
    ['an unknown format', { type: 'string', format: 'shoe-size' }, 'x', []],
    [
      'a value outside the enum',
      { type: 'string', enum: ['A', 'B'] },
      'C',
      ['spec.a: Unsupported value: "C": supported values: "A", "B"'],
    ],
    [
      'too many items',
      { type: 'array', maxItems: 1, items: { type: 'integer' } },
      [1, 2],
      ['spec.a: Too many: 2: must have at most 1 items'],
    ],
    [
      'too few items',
      { type: 'array', minItems: 1, items: { type: 'integer' } },
      [],
      ['spec.a: Invalid value: 0: spec.a in body should have at least 1 items'],
    ],
    [
      'a wrong item',
      { type: 'array', items: { type: 'object', properties: { b: { type: 'integer' } } } },
      [{ b: 1 }, { b: 'x' }],
      [
        'spec.a[1].b: Invalid value: "string": spec.a[1].b in body must be of type integer: "string"',
      ],
    ],
    [
      'too many properties',
      { type: 'object', maxProperties: 1, additionalProperties: { type: 'string' } },
      { b: '', c: '' },
      ['spec.a: Too many: 2: must have at most 1 items'],
    ],
    [
      'too few properties',
      { type: 'object', minProperties: 1, additionalProperties: { type: 'string' } },
      {},
      ['spec.a: Invalid value: 0: spec.a in body should have at least 1 properties'],
    ],
    [
      'a wrong value in a map',
      { type: 'object', additionalProperties: { type: 'string' } },
      { 'b.c': 1 },
      [
        'spec.a.b.c: Invalid value: "integer": spec.a.b.c in body must be of type string: "integer"',
      ],
    ],
    [
      'a missing field',
      { type: 'object', required: ['b'], properties: { b: { type: 'string' } } },
      {},
      ['spec.a.b: Required value'],
    ],
    [
      'a repeated key in a list map',
      byKey('type'),
      [
        { type: 'R', n: 1 },
        { type: 'R', n: 2 },
      ],
      ['spec.a[1]: Duplicate value: map[string]interface {}{"type":"R"}'],
    ],
    [
      'a repeated item in a set',
      { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
      ['x', 'y', 'x'],
      ['spec.a[2]: Duplicate value: "x"'],
    ],
    [
      'an embedded resource without a type',
      { type: 'object', 'x-kubernetes-embedded-resource': true },
      { kind: 'Pod' },
      ['spec.a.apiVersion: Required value'],
    ],
    [
      'no alternative of oneOf',
      { type: 'object', oneOf: [{ required: ['b'] }, { required: ['c'] }] },
      {},
      [
        '<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found none valid',
        'spec.a.b: Required value',
      ],
    ],
    [
      'two alternatives of oneOf',
      { type: 'integer', oneOf: [{ minimum: 1 }, { minimum: 2 }] },
      3,
      [
        '<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found 2 valid alternatives',
      ],
    ],
    [
      'no alternative of anyOf',
      { type: 'integer', anyOf: [{ minimum: 5 }, { maximum: 1 }] },
      3,
      [
        '<nil>: Invalid value: "": "spec.a" must validate at least one schema (anyOf)',
        'spec.a: Invalid value: 3: spec.a in body should be greater than or equal to 5',
      ],
    ],
    [
      'what not forbids',
      { type: 'integer', not: { minimum: 3 } },
      3,
      ['<nil>: Invalid value: "": "spec.a" must not validate the schema (not)'],
    ],
  ])('%s', (_name, schema, value, expected) => {
    expect(errors(schema, value)).toEqual(expected);
  });

  it('does not judge again what an update leaves as it was', () => {
    const schema = byKey('type');
    const bad = { type: 'R', n: 'x' };
    expect(errors(schema, [bad, { type: 'S', n: 1 }], [bad])).toEqual([]);
    expect(errors(schema, [{ type: 'R', n: 'y' }], [bad])).toHaveLength(1);
  });
});
