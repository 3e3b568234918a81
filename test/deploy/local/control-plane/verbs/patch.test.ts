import { describe, expect, it } from 'vitest';
import type { PatchType } from '#deploy/local/control-plane/api/verbs/patch-types.ts';
import type { PatchOptions } from '#deploy/local/control-plane/api/verbs/verbs.ts';
import type { JsonObject, JsonValue } from '#deploy/local/control-plane/json.ts';
import { at, createTestControlPlane, pod, refusal, widget } from './control-plane.ts';

const setUp = () => {
  const plane = createTestControlPlane();
  const widgets = plane.withWidgets();
  const patch = (type: PatchType, body: JsonValue, options: PatchOptions = {}) =>
    plane.verbs.patch(widgets, 'default', 'a', type, body, options);
  return { ...plane, widgets, patch };
};

const config = (spec: JsonObject): JsonObject => widget('a', spec);

describe('patch', () => {
  it.each([
    ['json', [{ op: 'replace', path: '/spec/size', value: 7 }]],
    ['merge', { spec: { size: 7 } }],
  ] as const)('changes a custom resource (%s)', (type, body) => {
    const { verbs, widgets, patch } = setUp();
    verbs.create(widgets, 'default', widget('a'), {});
    const { object } = patch(type, structuredClone(body) as unknown as JsonValue);
    expect(object).toMatchObject({ spec: { size: 7, colour: 'red' }, metadata: { generation: 2 } });
  });

  it('merges lists of built-in kinds by key', () => {
    const { verbs, resource } = setUp();
    const pods = resource('', 'pods');
    verbs.create(pods, 'default', pod('p'), {});
    const body = { spec: { containers: [{ name: 'main', image: 'squid:7' }] } };
    const { object } = verbs.patch(pods, 'default', 'p', 'strategic', body, {});
    expect(object).toMatchObject({
      spec: { containers: [{ name: 'main', image: 'squid:7', imagePullPolicy: 'IfNotPresent' }] },
    });
  });

  it.each([
    ['strategic', {}, 415, 'application/merge-patch+json'],
    ['merge', { spec: { size: 'x' } }, 422, 'spec.size'],
    ['merge', { metadata: { resourceVersion: '1' } }, 409, 'the object has been modified'],
    ['merge', { metadata: { name: 'b' } }, 400, 'does not match the name on the URL'],
    ['merge', [], 400, 'merge patch'],
    ['json', [{ op: 'test', path: '/spec/size', value: 9 }], 422, ''],
  ] as const)('refuses a %s patch of %j', (type, body, code, message) => {
    const { verbs, widgets, patch } = setUp();
    verbs.create(widgets, 'default', widget('a'), {});
    const error = refusal(() => patch(type, structuredClone(body) as unknown as JsonValue));
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
  });

  it('refuses unknown fields when validation is strict', () => {
    const { verbs, widgets, patch } = setUp();
    verbs.create(widgets, 'default', widget('a'), {});
    const body = { spec: { foo: 1 } };
    const error = refusal(() => patch('merge', body, { fieldValidation: 'Strict' }));
    expect(error.code).toBe(422);
    expect(error.message).toContain('strict decoding error: unknown field "spec.foo"');
    expect(patch('merge', body).warnings).toEqual(['unknown field "spec.foo"']);
  });

  it('answers 404 for what is not there, and changes nothing on a dry run', () => {
    const { verbs, widgets, patch, store } = setUp();
    expect(refusal(() => patch('merge', {})).code).toBe(404);
    verbs.create(widgets, 'default', widget('a'), {});
    const before = store.revision;
    const { object } = patch('merge', { spec: { size: 4 } }, { dryRun: true });
    expect(at(object, 'spec', 'size')).toBe(4);
    expect(store.revision).toBe(before);
  });
});

describe('server-side apply', () => {
  it('creates, changes, and takes out what is no longer applied', () => {
    const { patch, store } = setUp();
    const first = patch('apply', config({ size: 1, mode: 'm' }), { fieldManager: 'me' });
    expect(first.created).toBe(true);
    const before = store.revision;
    const again = patch('apply', config({ size: 1, mode: 'm' }), { fieldManager: 'me' });
    expect(again.created).toBeUndefined();
    expect(store.revision).toBe(before);
    expect(again.object).toEqual(first.object);
    const { object } = patch('apply', config({ size: 2, mode: 'm' }), { fieldManager: 'me' });
    expect(object).toMatchObject({ spec: { size: 2 }, metadata: { generation: 2 } });
  });

  it('reports conflicts with the fields of others and takes them over by force', () => {
    const { patch } = setUp();
    patch('apply', config({ size: 1 }), { fieldManager: 'one' });
    const other = config({ size: 2 });
    const { status } = refusal(() => patch('apply', other, { fieldManager: 'two' }));
    expect(status).toMatchObject({
      code: 409,
      reason: 'Conflict',
      message: expect.stringContaining('conflict with "one": .spec.size'),
      details: { causes: [{ reason: 'FieldManagerConflict', field: '.spec.size' }] },
    });
    const { object } = patch('apply', other, { fieldManager: 'two', force: true });
    expect(at(object, 'spec', 'size')).toBe(2);
    expect(at(object, 'metadata', 'managedFields')).toMatchObject([{ manager: 'two' }]);
  });

  it('writes the status alone through its subresource', () => {
    const { patch, verbs, widgets } = setUp();
    verbs.create(widgets, 'default', widget('a'), { fieldManager: 'user' });
    const body = { ...config({ size: 9 }), status: { phase: 'Ready' } };
    const options = { fieldManager: 'agent', subresource: 'status' } as const;
    const { object } = patch('apply', body, options);
    expect(object).toMatchObject({ spec: { size: 1 }, status: { phase: 'Ready' } });
    expect(at(object, 'metadata', 'managedFields')).toContainEqual(
      expect.objectContaining({ manager: 'agent', operation: 'Apply', subresource: 'status' }),
    );
    expect(at(object, 'metadata', 'generation')).toBe(1);
  });

  it('needs a field manager, and nothing that is not there for a status', () => {
    const { patch } = setUp();
    expect(refusal(() => patch('apply', config({ size: 1 }))).message).toContain('fieldManager');
    const options = { fieldManager: 'agent', subresource: 'status' } as const;
    expect(refusal(() => patch('apply', config({ size: 1 }), options)).code).toBe(404);
  });
});
