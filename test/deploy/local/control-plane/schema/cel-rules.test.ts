import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '#deploy/local/control-plane/json.ts';
import { renderFieldError } from '#deploy/local/control-plane/schema/field-error.ts';
import { compileResourceSchema } from '#deploy/local/control-plane/schema/resource-schema.ts';

const resource = (a: JsonObject) =>
  compileResourceSchema({
    type: 'object',
    properties: { spec: { type: 'object', properties: { a } } },
  });

function errors(a: JsonObject, value: JsonValue, old?: JsonValue): string[] {
  const before = old === undefined ? undefined : { spec: { a: old } };
  return resource(a)
    .validate({ spec: { a: value } }, before)
    .map(renderFieldError);
}

const rules = (...list: JsonObject[]): JsonObject => ({ 'x-kubernetes-validations': list });
const text = { type: 'string' };
const int = { type: 'integer' };
const object = (properties: JsonObject, ...list: JsonObject[]): JsonObject => ({
  type: 'object',
  properties,
  ...rules(...list),
});

describe('CEL rules', () => {
  it.each<[string, JsonObject, JsonValue]>([
    ['int arithmetic', { ...int, ...rules({ rule: 'self % 2 == 0' }) }, 4],
    ['a comparison of int and double', { type: 'number', ...rules({ rule: 'self > 1' }) }, 1.5],
    ['has', object({ b: text, c: text }, { rule: 'has(self.b) != has(self.c)' }), { b: 'x' }],
    ['raw strings', { ...text, ...rules({ rule: String.raw`self.matches(r'^a\.b$')` }) }, 'a.b'],
    ['string functions', { ...text, ...rules({ rule: "self.replace('a', 'b') == 'bb'" }) }, 'ab'],
    [
      'maps and their keys',
      {
        type: 'object',
        additionalProperties: text,
        ...rules({ rule: "self.all(k, k.size() < 3 && self[k] == 'x')" }),
      },
      { 'a.': 'x' },
    ],
    [
      'lists',
      {
        type: 'array',
        items: int,
        ...rules({ rule: 'self.isSorted() && self.sum() == 6 && self.max() == 3' }),
      },
      [1, 2, 3],
    ],
    [
      'exists, filter and map',
      {
        type: 'array',
        items: object({ n: int }),
        ...rules({
          rule: 'self.exists(x, x.n == 2) && self.filter(x, x.n > 1).map(x, x.n) == [2]',
        }),
      },
      [{ n: 1 }, { n: 2 }],
    ],
    [
      'timestamps',
      {
        type: 'string',
        format: 'date-time',
        ...rules({ rule: "self < timestamp('2027-01-01T00:00:00Z')" }),
      },
      '2026-01-01T00:00:00Z',
    ],
    [
      'escaped names',
      object({ 'x-y': int, in: int }, { rule: 'self.x__dash__y == self.__in__' }),
      { 'x-y': 1, in: 1 },
    ],
    [
      'a null value, which no rule sees',
      { ...text, nullable: true, ...rules({ rule: 'false' }) },
      null,
    ],
  ])('know %s', (_name, schema, value) => {
    expect(resource(schema).problems).toEqual([]);
    expect(errors(schema, value)).toEqual([]);
  });

  it.each<[string, JsonObject, JsonValue, string]>([
    [
      'the message',
      { rule: 'false', message: ' no way ' },
      'x',
      'spec.a: Invalid value: "string": no way',
    ],
    [
      'the rule, without a message',
      { rule: 'self == "y"' },
      'x',
      'spec.a: Invalid value: "string": failed rule: self == "y"',
    ],
    [
      'a computed message',
      { rule: 'false', message: 'm', messageExpression: '"got " + self' },
      'x',
      'spec.a: Invalid value: "string": got x',
    ],
    [
      'the message when its expression fails',
      { rule: 'false', message: 'm', messageExpression: 'self.nope' },
      'x',
      'spec.a: Invalid value: "string": m',
    ],
    [
      'Forbidden',
      { rule: 'false', message: 'm', reason: 'FieldValueForbidden' },
      'x',
      'spec.a: Forbidden: m',
    ],
    [
      'Required',
      { rule: 'false', message: 'm', reason: 'FieldValueRequired' },
      'x',
      'spec.a: Required value: m',
    ],
    [
      'Duplicate',
      { rule: 'false', message: 'm', reason: 'FieldValueDuplicate' },
      'x',
      'spec.a: Duplicate value: "string"',
    ],
    [
      'what went wrong while evaluating',
      { rule: 'int(self) / 0 == 1', message: 'm' },
      '5',
      'spec.a: Invalid value: "string": division by zero evaluating rule: m',
    ],
  ])('report %s', (_name, rule, value, expected) => {
    expect(errors({ ...text, ...rules(rule) }, value)).toEqual([expected]);
  });

  it('put the error where fieldPath says', () => {
    const at = (fieldPath: string) =>
      errors(object({ b: int }, { rule: 'false', message: 'm', fieldPath }), { b: 1 });
    expect(at('.b')).toEqual(['spec.a.b: Invalid value: "object": m']);
    expect(at(".c['d.e']")).toEqual(['spec.a.c[d.e]: Invalid value: "object": m']);
  });

  it('place rules on map values by key', () => {
    const schema = {
      type: 'object',
      additionalProperties: { ...text, ...rules({ rule: 'false', message: 'm' }) },
    };
    expect(errors(schema, { k: 'v' })).toEqual(['spec.a[k]: Invalid value: "string": m']);
  });

  it('see a missing key as an error, not as a crash', () => {
    const schema = object({ b: text }, { rule: 'self.b == "x"', message: 'm' });
    expect(errors(schema, {})).toEqual([
      'spec.a: Invalid value: "object": no such key: b evaluating rule: m',
    ]);
  });

  it('report a rule that does not compile when the schema is compiled', () => {
    const schema = resource({ ...text, ...rules({ rule: 'self +' }, { rule: 'self.nope()' }) });
    expect(schema.problems.map((problem) => problem.field)).toEqual([
      '.properties[spec].properties[a].x-kubernetes-validations[0].rule',
      '.properties[spec].properties[a].x-kubernetes-validations[1].rule',
    ]);
    expect(schema.validate({ spec: { a: 'x' } })[0]?.detail).toContain('rule compile error');
  });

  it('see of the metadata only the names', () => {
    const schema = compileResourceSchema({
      type: 'object',
      ...rules({ rule: "self.metadata.name == 'a' && !has(self.metadata.labels)", message: 'm' }),
    });
    expect(schema.validate({ metadata: { name: 'a', labels: { x: 'y' } } })).toEqual([]);
    expect(schema.validate({ metadata: { name: 'b' } })).toHaveLength(1);
  });

  it('are not evaluated on an object whose types are wrong, and the error says so', () => {
    const schema = object({ b: int }, { rule: 'self.b > 0' });
    expect(errors(schema, { b: 'x' })).toEqual([
      'spec.a.b: Invalid value: "string": spec.a.b in body must be of type integer: "string"',
      '<nil>: Invalid value: "null": some validation rules were not checked because the object was ' +
        'invalid; correct the existing errors to complete validation',
    ]);
  });
});

describe('transition rules', () => {
  const immutable = rules({ rule: 'self == oldSelf', message: 'is immutable' });
  const refused = 'Invalid value: "string": is immutable';

  it('compare with the old value, if there is one', () => {
    const schema = { ...text, ...immutable };
    expect(errors(schema, 'x')).toEqual([]);
    expect(errors(schema, 'x', 'x')).toEqual([]);
    expect(errors(schema, 'y', 'x')).toEqual([`spec.a: ${refused}`]);
  });

  it('compare whole objects and lists', () => {
    const schema = {
      type: 'object',
      properties: { l: { type: 'array', items: int } },
      ...immutable,
    };
    expect(errors(schema, { l: [1, 2] }, { l: [1, 2] })).toEqual([]);
    expect(errors(schema, { l: [2, 1] }, { l: [1, 2] })).toHaveLength(1);
  });

  it('follow the items of a list map by key and ignore those of an atomic list', () => {
    const items = { type: 'object', properties: { k: text, v: { ...text, ...immutable } } };
    const map = {
      type: 'array',
      items,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
    };
    const old = [
      { k: 'a', v: '1' },
      { k: 'b', v: '2' },
    ];
    const changed = [
      { k: 'b', v: '3' },
      { k: 'a', v: '1' },
    ];
    expect(errors(map, changed, old)).toEqual([`spec.a[0].v: ${refused}`]);
    expect(errors({ type: 'array', items }, changed, old)).toEqual([]);
  });

  it('with optionalOldSelf run on creation too', () => {
    const rule = {
      rule: "oldSelf.hasValue() || self == 'start'",
      message: 'm',
      optionalOldSelf: true,
    };
    const schema = { ...text, ...rules(rule) };
    expect(errors(schema, 'start')).toEqual([]);
    expect(errors(schema, 'other')).toHaveLength(1);
    expect(errors(schema, 'other', 'start')).toEqual([]);
  });

  it('leave other rules alone on what an update does not change', () => {
    const schema = object({ b: { ...text, ...rules({ rule: 'false' }) }, c: text });
    expect(errors(schema, { b: 'x', c: 'new' }, { b: 'x', c: 'old' })).toEqual([]);
    expect(errors(schema, { b: 'y', c: 'old' }, { b: 'x', c: 'old' })).toHaveLength(1);
  });
});
