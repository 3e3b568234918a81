import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '#deploy/local/control-plane/json.ts';
import { compileResourceSchema } from '#deploy/local/control-plane/schema/resource-schema.ts';

const schema = compileResourceSchema({
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer', default: 3 },
        name: { type: 'string' },
        maybe: { type: 'string', nullable: true, default: 'filled' },
        nested: {
          type: 'object',
          default: {},
          properties: { level: { type: 'integer', default: 1 }, tag: { type: 'string' } },
        },
        list: {
          type: 'array',
          items: { type: 'object', properties: { port: { type: 'integer', default: 80 } } },
        },
        map: { type: 'object', additionalProperties: { type: 'string', default: 'd' } },
        open: {
          type: 'object',
          'x-kubernetes-preserve-unknown-fields': true,
          properties: { known: { type: 'object', properties: { a: { type: 'string' } } } },
        },
        embedded: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          properties: { spec: { type: 'object' } },
        },
        any: { 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
  },
});

const spec = (value: JsonObject): JsonObject => ({ apiVersion: 'v', kind: 'K', spec: value });

describe('defaults', () => {
  it('fill what is absent, inside defaults and list items too', () => {
    expect(schema.applyDefaults(spec({ list: [{}, { port: 1 }] }))).toEqual(
      spec({
        list: [{ port: 80 }, { port: 1 }],
        size: 3,
        maybe: 'filled',
        nested: { level: 1 },
      }),
    );
  });

  it('replace a null that is not allowed, drop it without a default, and keep an allowed one', () => {
    const result = schema.applyDefaults(
      spec({ size: null, name: null, maybe: null, map: { a: null }, nested: null }),
    );
    expect(result).toEqual(spec({ size: 3, maybe: null, map: { a: 'd' }, nested: { level: 1 } }));
  });

  it('never share the default with the schema', () => {
    const first = schema.applyDefaults(spec({}));
    expect(JSON.stringify(first)).toContain('"level":1');
    const nested = first.spec;
    if (typeof nested === 'object' && nested !== null && !Array.isArray(nested)) {
      nested.nested = { level: 99 };
    }
    expect(schema.applyDefaults(spec({}))).not.toEqual(first);
  });
});

describe('pruning', () => {
  it('drops and names unknown fields at every depth', () => {
    const object = spec({
      name: 'a',
      foo: 1,
      nested: { bar: 2 },
      list: [{ port: 1 }, { baz: 3 }],
      map: { free: 'x' },
    });
    expect(schema.prune(object)).toEqual(
      spec({ name: 'a', nested: {}, list: [{ port: 1 }, {}], map: { free: 'x' } }),
    );
    expect(schema.unknownFields(object)).toEqual([
      'spec.foo',
      'spec.nested.bar',
      'spec.list[1].baz',
    ]);
  });

  it('keeps unknown fields where the schema preserves them, but not below a known property', () => {
    const object = spec({ open: { extra: { deep: 1 }, known: { a: 'x', b: 1 } }, any: [{ x: 1 }] });
    expect(schema.prune(object)).toEqual(
      spec({ open: { extra: { deep: 1 }, known: { a: 'x' } }, any: [{ x: 1 }] }),
    );
  });

  it('leaves type and metadata of an embedded resource alone', () => {
    const embedded = { apiVersion: 'v1', kind: 'Pod', metadata: { whatever: 1 }, other: 1 };
    expect(schema.prune(spec({ embedded }))).toEqual(
      spec({ embedded: { apiVersion: 'v1', kind: 'Pod', metadata: { whatever: 1 } } }),
    );
  });

  it('treats metadata as ObjectMeta', () => {
    const object = { kind: 'K', metadata: { name: 'a', labels: { b: 'c' }, colour: 'red' } };
    expect(schema.prune(object)).toEqual({
      kind: 'K',
      metadata: { name: 'a', labels: { b: 'c' } },
    });
    expect(schema.unknownFields(object)).toEqual(['metadata.colour']);
  });

  it('takes __proto__ and constructor for unknown fields like any other', () => {
    const object: JsonObject = JSON.parse(
      '{"spec":{"__proto__":{"size":9},"constructor":1,"map":{"__proto__":"x"}}}',
    );
    expect(schema.unknownFields(object)).toEqual(['spec.__proto__', 'spec.constructor']);
    const result = schema.applyDefaults(schema.prune(object));
    expect(JSON.stringify(result)).toContain('"map":{"__proto__":"x"}');
    expect(Object.getPrototypeOf(result.spec)).toBe(Object.prototype);
  });
});

const anyJson: fc.Arbitrary<JsonValue> = fc
  .jsonValue({ maxDepth: 4 })
  .map((value): JsonValue => JSON.parse(JSON.stringify(value)));
const key = fc.constantFrom(
  'size',
  'name',
  'maybe',
  'nested',
  'list',
  'map',
  'open',
  '__proto__',
  'x',
);
const anySpec = fc
  .array(fc.tuple(key, anyJson), { maxLength: 8 })
  .map((entries) => spec(Object.fromEntries(entries)));

describe('pruning and defaulting', () => {
  it('change nothing when done a second time', () => {
    fc.assert(
      fc.property(anySpec, (object) => {
        const once = schema.applyDefaults(schema.prune(object));
        expect(schema.applyDefaults(schema.prune(once))).toEqual(once);
        expect(schema.unknownFields(once)).toEqual([]);
      }),
    );
  });

  it('leave what they are given untouched, and validation never throws', () => {
    fc.assert(
      fc.property(anySpec, (object) => {
        const before = JSON.stringify(object);
        schema.validate(schema.applyDefaults(schema.prune(object)), object);
        expect(JSON.stringify(object)).toBe(before);
      }),
    );
  });
});
