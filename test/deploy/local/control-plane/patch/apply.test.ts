import { describe, expect, it } from 'vitest';
import { isJsonObject, type JsonObject, type JsonValue } from '#deploy/local/control-plane/json.ts';
import { type ApplyRequest, applyPatch } from '#deploy/local/control-plane/patch/apply.ts';
import { conflictCauses, conflictMessage } from '#deploy/local/control-plane/patch/conflicts.ts';
import { PatchError } from '#deploy/local/control-plane/patch/patch-error.ts';
import { trackUpdate } from '#deploy/local/control-plane/patch/track-update.ts';
import { compileResourceSchema } from '#deploy/local/control-plane/schema/resource-schema.ts';

const item = {
  type: 'object',
  required: ['type'],
  properties: { type: { type: 'string' }, value: { type: 'string' } },
};
const { root } = compileResourceSchema({
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer' },
        note: { type: 'string' },
        nested: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } } },
        attributes: { type: 'object', additionalProperties: { type: 'string' } },
        table: { type: 'object', additionalProperties: item },
        whole: {
          type: 'object',
          'x-kubernetes-map-type': 'atomic',
          additionalProperties: { type: 'string' },
        },
        tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
        steps: { type: 'array', items: { type: 'string' } },
        parts: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['type'],
          items: item,
        },
      },
    },
    status: { type: 'object', properties: { phase: { type: 'string' } } },
  },
});

const base = { apiVersion: 'g.io/v1', kind: 'Thing', metadata: { name: 'a', namespace: 'n' } };
const scope = { schema: root, subresource: '', statusSubresource: true };

function apply(
  live: JsonObject | undefined,
  manager: string,
  spec: JsonObject,
  rest: Partial<ApplyRequest> = {},
) {
  const time = '2026-01-01T00:00:00.123Z';
  const applied = { ...base, spec };
  return applyPatch({ ...scope, live, applied, manager, force: false, time, ...rest });
}

function update(before: JsonObject | undefined, manager: string, spec: JsonObject): JsonObject {
  const after = { ...base, ...before, spec };
  return trackUpdate({ ...scope, before, after, manager, time: '2026-01-02T00:00:00Z' });
}

function fields(object: JsonObject, manager: string): JsonValue | undefined {
  const metadata = isJsonObject(object.metadata) ? object.metadata : {};
  const entries = Array.isArray(metadata.managedFields) ? metadata.managedFields : [];
  const entry = entries.filter(isJsonObject).find((candidate) => candidate.manager === manager);
  return entry?.fieldsV1;
}

describe('server-side apply', () => {
  it('creates the object and writes down what its manager owns', () => {
    const { object, conflicts } = apply(undefined, 'me', {
      size: 1,
      attributes: { x: 'y' },
      whole: { w: '1' },
      tags: ['t'],
      steps: ['s'],
      parts: [{ type: 'P', value: 'v' }],
    });
    expect(conflicts).toEqual([]);
    expect(object.metadata).toEqual({
      name: 'a',
      namespace: 'n',
      managedFields: [
        {
          apiVersion: 'g.io/v1',
          fieldsType: 'FieldsV1',
          fieldsV1: {
            'f:spec': {
              'f:attributes': { 'f:x': {} },
              'f:parts': { 'k:{"type":"P"}': { '.': {}, 'f:type': {}, 'f:value': {} } },
              'f:size': {},
              'f:steps': {},
              'f:tags': { 'v:"t"': {} },
              'f:whole': {},
            },
          },
          manager: 'me',
          operation: 'Apply',
          time: '2026-01-01T00:00:00Z',
        },
      ],
    });
  });

  it('refuses to change the field of another manager and names both', () => {
    const live = update(undefined, 'kubectl-client-side-apply', { size: 1, note: 'n' });
    const { object, conflicts } = apply(live, 'me', { size: 2 });
    expect(object).toBe(live);
    expect(conflictMessage(conflicts)).toBe(
      'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using g.io/v1: .spec.size',
    );
    expect(conflictCauses(conflicts)).toEqual([
      {
        reason: 'FieldManagerConflict',
        message: 'conflict with "kubectl-client-side-apply" using g.io/v1',
        field: '.spec.size',
      },
    ]);
  });

  it('lists several conflicts by manager', () => {
    const first = apply(undefined, 'one', { size: 1, parts: [{ type: 'P', value: 'v' }] }).object;
    const live = update(first, 'two', { size: 1, parts: [{ type: 'P', value: 'v' }], note: 'n' });
    const { conflicts } = apply(live, 'me', {
      size: 2,
      note: 'm',
      parts: [{ type: 'P', value: 'w' }],
    });
    expect(conflictMessage(conflicts)).toBe(
      [
        'Apply failed with 3 conflicts: conflicts with "one":',
        '- .spec.parts[type="P"].value',
        '- .spec.size',
        'conflicts with "two" using g.io/v1:',
        '- .spec.note',
      ].join('\n'),
    );
  });

  it('shares a field with another manager when both want the same', () => {
    const live = apply(undefined, 'one', { size: 1 }).object;
    const { object, conflicts } = apply(live, 'two', { size: 1 });
    expect(conflicts).toEqual([]);
    expect(fields(object, 'one')).toEqual({ 'f:spec': { 'f:size': {} } });
    expect(fields(object, 'two')).toEqual({ 'f:spec': { 'f:size': {} } });
  });

  it('takes a field over by force', () => {
    const live = apply(undefined, 'one', { size: 1, note: 'n' }).object;
    const { object } = apply(live, 'two', { size: 2 }, { force: true });
    expect(object.spec).toEqual({ size: 2, note: 'n' });
    expect(fields(object, 'one')).toEqual({ 'f:spec': { 'f:note': {} } });
    expect(fields(object, 'two')).toEqual({ 'f:spec': { 'f:size': {} } });
  });

  it('removes what it no longer applies and nobody else owns', () => {
    const spec = {
      size: 1,
      note: 'n',
      nested: { a: 'x' },
      attributes: { x: '1', y: '2' },
      tags: ['s', 't'],
      parts: [{ type: 'P' }, { type: 'Q', value: 'v' }],
    };
    const live = apply(undefined, 'one', spec).object;
    const shared = apply(live, 'two', { note: 'n', tags: ['t'] }).object;
    const { object } = apply(shared, 'one', { attributes: { x: '1' }, parts: [{ type: 'Q' }] });
    expect(object.spec).toEqual({
      note: 'n',
      attributes: { x: '1' },
      tags: ['t'],
      parts: [{ type: 'Q' }],
    });
  });

  it('leaves alone what others put beside its own fields', () => {
    const live = apply(undefined, 'one', { nested: { a: 'x' } }).object;
    const both = update(live, 'two', { nested: { a: 'x', b: 'y' } });
    expect(apply(both, 'one', {}).object.spec).toEqual({ nested: { b: 'y' } });
  });

  it('takes a struct, item or entry out with the defaults in it that nobody owns', () => {
    const live = apply(undefined, 'one', {
      size: 1,
      nested: { a: 'x' },
      table: { row: { type: 'P' } },
    }).object;
    const spec = { size: 1, nested: { a: 'x', b: 'd' }, table: { row: { type: 'P', value: 'd' } } };
    expect(apply({ ...live, spec }, 'one', { size: 1 }).object.spec).toEqual({ size: 1 });
  });

  it.each<[string, JsonObject | undefined, JsonObject, JsonObject]>([
    ['keeps an empty list', undefined, { parts: [] }, { parts: [] }],
    ['keeps an empty map', undefined, { attributes: {} }, { attributes: {} }],
    ['keeps an empty list over an empty one', { parts: [] }, { parts: [] }, { parts: [] }],
    ['puts an empty list over null', { tags: null }, { tags: [] }, { tags: [] }],
    ['puts null over an empty map', { attributes: {} }, { attributes: null }, { attributes: null }],
    ['leaves the items of others in an empty list', { tags: ['a'] }, { tags: [] }, { tags: ['a'] }],
    ['leaves the items of others under null', { tags: ['a'] }, { tags: null }, { tags: ['a'] }],
    [
      'leaves the entries of others under null',
      { attributes: { x: '1' } },
      { attributes: null },
      { attributes: { x: '1' } },
    ],
    ['puts an empty list over an atomic one', { steps: ['a'] }, { steps: [] }, { steps: [] }],
  ])('%s', (_name, before, spec, expected) => {
    const live = before === undefined ? undefined : update(undefined, 'other', before);
    const once = apply(live, 'me', spec, { force: true }).object;
    expect(once.spec).toEqual(expected);
    expect(apply(once, 'me', spec, { force: true }).object).toEqual(once);
  });

  it('drops a list or map that it empties, and keeps it empty when applied again', () => {
    const full = { size: 1, tags: ['a'], attributes: { x: '1' } };
    const empty = { size: 1, tags: [], attributes: {} };
    const live = apply(undefined, 'me', full).object;
    const emptied = apply(live, 'me', empty).object;
    expect(emptied.spec).toEqual({ size: 1 });
    expect(apply(emptied, 'me', empty).object.spec).toEqual(empty);
  });

  it('keeps the order of a configuration and the place of what it does not name', () => {
    const parts = (...types: string[]) => ({ parts: types.map((type) => ({ type })) });
    const live = update(undefined, 'other', parts('a', 'b', 'c'));
    expect(apply(live, 'me', parts('c', 'x', 'a')).object.spec).toEqual(parts('b', 'c', 'x', 'a'));
    expect(apply(live, 'me', parts('b', 'x')).object.spec).toEqual(parts('a', 'b', 'c', 'x'));
  });

  it('on a status writes the status and nothing else', () => {
    const live = update(undefined, 'one', { size: 1 });
    const applied = { ...base, spec: { size: 2 }, status: { phase: 'Ready' } };
    const request = { ...scope, live, applied, force: false, time: '2026-01-01T00:00:00Z' };
    const onStatus = applyPatch({ ...request, manager: 'me', subresource: 'status' });
    expect(onStatus.object).toMatchObject({ spec: { size: 1 }, status: { phase: 'Ready' } });
    expect(fields(onStatus.object, 'me')).toEqual({ 'f:status': { 'f:phase': {} } });
    const onMain = applyPatch({ ...request, manager: 'me', force: true });
    expect(onMain.object.status).toBeUndefined();
    expect(fields(onMain.object, 'me')).toEqual({ 'f:spec': { 'f:size': {} } });
  });

  it('names the subresource of the manager in a conflict', () => {
    const live = update(undefined, 'one', {});
    const track = { ...scope, manager: 'agent', subresource: 'status', time: 't' };
    const ready = trackUpdate({
      ...track,
      before: live,
      after: { ...live, status: { phase: 'Ready' } },
    });
    const applied = { ...base, status: { phase: 'Failed' } };
    const result = applyPatch({
      ...track,
      live: ready,
      applied,
      manager: 'me',
      force: false,
    });
    expect(conflictMessage(result.conflicts)).toBe(
      'Apply failed with 1 conflict: conflict with "agent" with subresource "status" using g.io/v1: .status.phase',
    );
  });

  it('lets kubectl take over what its client-side apply wrote, but not what changed since', () => {
    const last = JSON.stringify({ ...base, spec: { size: 1 } });
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': last };
    const created = { ...base, metadata: { ...base.metadata, annotations }, spec: { size: 1 } };
    const live = trackUpdate({
      ...scope,
      after: created,
      manager: 'kubectl-client-side-apply',
      time: 't',
    });
    expect(apply(live, 'kubectl', { size: 2 }).conflicts).toEqual([]);
    expect(apply(live, 'someone', { size: 2 }).conflicts).toHaveLength(1);
    const edited = update(live, 'editor', { size: 5 });
    expect(apply(edited, 'kubectl', { size: 2 }).conflicts).toHaveLength(1);
  });

  it('keeps the annotation of client-side apply in step when kubectl applies', () => {
    const name = 'kubectl.kubernetes.io/last-applied-configuration';
    const annotations = { [name]: JSON.stringify({ ...base, spec: { size: 1 } }), other: 'x' };
    const created = { ...base, metadata: { ...base.metadata, annotations }, spec: { size: 1 } };
    const live = trackUpdate({ ...scope, after: created, manager: 'kubectl', time: 't' });
    const text = (object: JsonObject) => {
      const { metadata } = object;
      const kept = isJsonObject(metadata) ? metadata.annotations : undefined;
      return isJsonObject(kept) ? kept[name] : undefined;
    };
    expect(text(apply(live, 'kubectl', { note: 'n', size: 1 }).object)).toBe(
      '{"apiVersion":"g.io/v1","kind":"Thing","metadata":{"name":"a","namespace":"n"},' +
        '"spec":{"note":"n","size":1}}\n',
    );
    expect(text(apply(live, 'someone', { size: 1 }).object)).toBe(annotations[name]);
    expect(text(apply(undefined, 'kubectl', { size: 1 }).object)).toBeUndefined();
    expect(text(apply(live, 'kubectl', { note: 'n'.repeat(256 * 1024) }).object)).toBeUndefined();
  });

  it.each<[string, JsonObject, string]>([
    ['a field that is not declared', { foo: 1 }, '.spec.foo: field not declared in schema'],
    [
      'an item without its key',
      { parts: [{ value: 'v' }] },
      '.spec.parts: element 0: associative list with keys has an element that omits key field ' +
        `"type" (and doesn't have default value)`,
    ],
    [
      'an item twice',
      { parts: [{ type: 'P' }, { type: 'P' }] },
      '.spec.parts: duplicate entries for key [type="P"]',
    ],
  ])('refuses %s', (_name, spec, problem) => {
    expect(() => apply(undefined, 'me', spec)).toThrow(
      new PatchError(
        'untyped',
        `failed to create typed patch object (n/a; g.io/v1, Kind=Thing): ${problem}`,
      ),
    );
  });

  it('refuses managedFields in a configuration, and an unnamed manager', () => {
    const applied = { ...base, metadata: { name: 'a', managedFields: [{ manager: 'x' }] } };
    expect(() => apply(undefined, 'me', {}, { applied })).toThrow(
      'metadata.managedFields must be nil',
    );
    expect(() => apply(undefined, '', {})).toThrow('fieldManager');
  });

  it('ignores a creationTimestamp and other fields of the server', () => {
    const live = {
      ...update(undefined, 'one', {}),
      metadata: { name: 'a', uid: 'u', creationTimestamp: 't' },
    };
    const applied = { ...base, metadata: { name: 'a', creationTimestamp: null, uid: 'other' } };
    expect(apply(live, 'me', {}, { applied }).object.metadata).toMatchObject({
      uid: 'u',
      creationTimestamp: 't',
    });
  });
});
