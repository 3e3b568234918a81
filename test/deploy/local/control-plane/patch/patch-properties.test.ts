import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  sameJson,
} from '#deploy/local/control-plane/json.ts';
import { builtinSchema } from '#deploy/local/control-plane/openapi/builtin/index.ts';
import { applyPatch } from '#deploy/local/control-plane/patch/apply.ts';
import {
  readFieldsV1,
  sameSets,
  writeFieldsV1,
} from '#deploy/local/control-plane/patch/field-set.ts';
import { compareFields, fieldsOf } from '#deploy/local/control-plane/patch/field-walk.ts';
import { applyJsonPatch } from '#deploy/local/control-plane/patch/json-patch.ts';
import { applyMergePatch } from '#deploy/local/control-plane/patch/merge-patch.ts';
import { PatchError } from '#deploy/local/control-plane/patch/patch-error.ts';
import { applyStrategicMergePatch } from '#deploy/local/control-plane/patch/strategic-merge-patch.ts';
import { trackUpdate } from '#deploy/local/control-plane/patch/track-update.ts';

const podSchema = builtinSchema('', 'v1', 'Pod');
if (podSchema === undefined) throw new Error('pods are built in');
const { root } = podSchema;

const names = ['a', 'b', 'spec', 'metadata', 'containers', 'name', '__proto__', 'constructor'];
const key = fc.oneof(fc.constantFrom(...names), fc.string({ maxLength: 3 }));
const { value: jsonValue } = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constantFrom<JsonValue>(null, true, 0, 1, 'x', ''),
    fc.array(tie('value'), { maxLength: 3 }),
    fc
      .array(fc.tuple(key, tie('value')), { maxLength: 4 })
      .map((entries) => Object.fromEntries(entries)),
  ),
}));
const jsonObject: fc.Arbitrary<JsonObject> = fc
  .array(fc.tuple(key, jsonValue), { maxLength: 5 })
  .map((entries) => Object.fromEntries(entries));

/** The patch that turns one object into another, to check that applying it does. */
function mergePatchBetween(before: JsonObject, after: JsonObject): JsonObject {
  const gone = Object.keys(before).filter((name) => !Object.hasOwn(after, name));
  const changed = Object.entries(after).flatMap(([name, value]): [string, JsonValue][] => {
    const old = Object.hasOwn(before, name) ? before[name] : undefined;
    if (isJsonObject(old) && isJsonObject(value)) return [[name, mergePatchBetween(old, value)]];
    return old !== undefined && sameJson(old, value) ? [] : [[name, value]];
  });
  return Object.fromEntries([...gone.map((name): [string, JsonValue] => [name, null]), ...changed]);
}

/** Merge patches cannot set null: null means removal. */
function withoutNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value;
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, item]) =>
      item === null ? [] : [[name, withoutNulls(item)] as const],
    ),
  );
}

function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function onlyPatchErrors(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(PatchError);
  }
}

describe('patches', () => {
  it('a merge patch made from two objects leads from one to the other', () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (before, target) => {
        const after = withoutNulls(target);
        if (!isJsonObject(after)) throw new Error('an object stays an object');
        const patched = applyMergePatch(before, mergePatchBetween(before, after));
        expect(sameJson(patched, after)).toBe(true);
      }),
    );
  });

  it('a JSON patch made from two objects leads from one to the other and back', () => {
    const between = (from: JsonObject, to: JsonObject): JsonValue[] => [
      ...Object.keys(from).map((name) => ({ op: 'remove', path: `/${escapePointer(name)}` })),
      ...Object.entries(to).map(([name, value]) => ({
        op: 'add',
        path: `/${escapePointer(name)}`,
        value,
      })),
    ];
    fc.assert(
      fc.property(jsonObject, jsonObject, (before, after) => {
        const there = applyJsonPatch(before, between(before, after));
        expect(sameJson(there, after)).toBe(true);
        expect(sameJson(applyJsonPatch(there, between(after, before)), before)).toBe(true);
      }),
    );
  });

  it('garbage is a PatchError and never anything else', () => {
    const operation = fc.record(
      {
        op: fc.constantFrom<JsonValue>('add', 'remove', 'replace', 'move', 'copy', 'test', 7),
        path: fc.oneof(fc.constantFrom('/a/b', '/__proto__/x', '/a/0', ''), fc.string()),
        from: fc.oneof(fc.constantFrom('/a', '/constructor'), fc.string()),
        value: jsonValue,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(jsonObject, jsonValue, fc.array(operation), (object, patch, operations) => {
        onlyPatchErrors(() => applyJsonPatch(object, patch));
        onlyPatchErrors(() => applyJsonPatch(object, JSON.parse(JSON.stringify(operations))));
        onlyPatchErrors(() => applyMergePatch(object, patch));
        onlyPatchErrors(() => applyStrategicMergePatch(object, patch, root));
      }),
    );
  });

  it('directives anywhere in a strategic merge patch are no reason to crash', () => {
    const directive = fc.constantFrom(
      '$patch',
      '$retainKeys',
      '$setElementOrder/containers',
      '$deleteFromPrimitiveList/containers',
      'containers',
      'name',
    );
    const item = fc
      .array(fc.tuple(directive, jsonValue), { maxLength: 4 })
      .map((entries): JsonObject => Object.fromEntries(entries));
    fc.assert(
      fc.property(item, fc.array(item), item, (spec, containers, patch) => {
        const object = { spec: { ...spec, containers } };
        onlyPatchErrors(() => applyStrategicMergePatch(object, { spec: patch }, root));
      }),
    );
  });
});

describe('server-side apply', () => {
  const container = fc.record(
    {
      name: fc.constantFrom('a', 'b', 'c'),
      image: fc.constantFrom('1', '2'),
      env: fc.uniqueArray(
        fc.record({ name: fc.constantFrom('X', 'Y'), value: fc.constantFrom('1', '2') }),
        { selector: (item) => item.name },
      ),
    },
    { requiredKeys: ['name'] },
  );
  const pod = fc
    .record(
      {
        containers: fc.uniqueArray(container, { selector: (item) => item.name, maxLength: 3 }),
        nodeName: fc.constantFrom('n', 'm'),
        overhead: fc.dictionary(fc.constantFrom('x', '__proto__'), fc.constantFrom('1', '2')),
        nodeSelector: fc.dictionary(fc.constantFrom('x', '__proto__'), fc.constantFrom('1', '2')),
      },
      { requiredKeys: [] },
    )
    .map((spec): JsonObject => {
      const text = JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec });
      return JSON.parse(text);
    });

  /** A list or map that was emptied is gone; one that never had an entry stays empty. */
  const withoutEmpty = (value: JsonValue | undefined): JsonValue | undefined => {
    if (Array.isArray(value)) return value.map((item) => withoutEmpty(item) ?? {});
    if (!isJsonObject(value)) return value;
    const entries = Object.entries(value).flatMap(([name, item]): [string, JsonValue][] => {
      const kept = withoutEmpty(item);
      return kept === undefined || (Array.isArray(kept) && kept.length === 0) ? [] : [[name, kept]];
    });
    return entries.length === 0 ? undefined : Object.fromEntries(entries);
  };

  const request = { force: true, schema: root, subresource: '', statusSubresource: true };
  const apply = (
    live: JsonObject | undefined,
    applied: JsonObject,
    manager: string,
    time: string,
  ) => applyPatch({ ...request, live, applied, manager, time }).object;

  it('done twice changes nothing, not even the time', () => {
    fc.assert(
      fc.property(pod, pod, (first, second) => {
        const live = apply(undefined, first, 'one', '2026-01-01T00:00:00Z');
        const once = apply(live, second, 'two', '2026-01-02T00:00:00Z');
        expect(apply(once, second, 'two', '2026-01-03T00:00:00Z')).toEqual(once);
      }),
    );
  });

  it('sets all that is applied, and takes out all that its only manager applied before', () => {
    fc.assert(
      fc.property(pod, pod, (first, second) => {
        const live = apply(undefined, first, 'one', '2026-01-01T00:00:00Z');
        const next = apply(live, second, 'one', '2026-01-02T00:00:00Z');
        expect(sameJson(withoutEmpty(next.spec), withoutEmpty(second.spec))).toBe(true);
      }),
    );
  });

  it('gives every changed field exactly one owner after updates', () => {
    fc.assert(
      fc.property(pod, pod, (first, second) => {
        const track = { schema: root, subresource: '', statusSubresource: true };
        const time = '2026-01-01T00:00:00Z';
        const before = trackUpdate({ ...track, after: first, manager: 'one', time });
        const after = trackUpdate({ ...track, before, after: second, manager: 'two', time });
        const { added, modified } = compareFields(first, second, root);
        const changed = JSON.stringify([writeFieldsV1(added), writeFieldsV1(modified)]);
        const metadata = after.metadata;
        const entries = isJsonObject(metadata) ? metadata.managedFields : [];
        const managers = (Array.isArray(entries) ? entries : []).map(
          (entry) => isJsonObject(entry) && entry.manager,
        );
        expect(managers.includes('two')).toBe(changed !== '[{},{}]');
      }),
    );
  });

  it('writes and reads sets of fields without loss', () => {
    fc.assert(
      fc.property(jsonObject, (object) => {
        const set = fieldsOf(object, root);
        expect(sameSets(readFieldsV1(writeFieldsV1(set)), set)).toBe(true);
      }),
    );
  });

  it('and tracking survive any object', () => {
    fc.assert(
      fc.property(jsonObject, jsonObject, (before, after) => {
        const track = { schema: root, subresource: '', statusSubresource: false, manager: 'm' };
        trackUpdate({ ...track, before, after, time: '' });
        onlyPatchErrors(() => apply(before, after, 'm', ''));
      }),
    );
  });
});
