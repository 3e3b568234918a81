import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '#deploy/local/control-plane/json.ts';
import { builtinSchema } from '#deploy/local/control-plane/openapi/builtin/index.ts';
import { PatchError } from '#deploy/local/control-plane/patch/patch-error.ts';
import { applyStrategicMergePatch } from '#deploy/local/control-plane/patch/strategic-merge-patch.ts';

const podSchema = builtinSchema('', 'v1', 'Pod');
if (podSchema === undefined) throw new Error('pods are built in');
const { root } = podSchema;

const patchSpec = (spec: JsonObject, patch: JsonObject): JsonValue | undefined =>
  applyStrategicMergePatch({ spec }, { spec: patch }, root).spec;

const container = (name: string, rest: JsonObject = {}): JsonObject => ({ name, ...rest });

describe('a strategic merge patch', () => {
  it('merges containers by name and their env by name, new ones before those it does not name', () => {
    const spec = {
      containers: [
        container('a', { image: '1', env: [{ name: 'X', value: '1' }] }),
        container('b', { image: '1' }),
      ],
    };
    const patch = {
      containers: [
        container('a', { image: '2', env: [{ name: 'Y', value: '2' }] }),
        container('c'),
      ],
    };
    expect(patchSpec(spec, patch)).toEqual({
      containers: [
        container('a', {
          image: '2',
          env: [
            { name: 'Y', value: '2' },
            { name: 'X', value: '1' },
          ],
        }),
        container('c'),
        container('b', { image: '1' }),
      ],
    });
  });

  it.each<[string, JsonObject, JsonObject, JsonObject]>([
    [
      'ports by containerPort',
      { containers: [container('a', { ports: [{ containerPort: 80 }] })] },
      { containers: [container('a', { ports: [{ containerPort: 80, name: 'web' }] })] },
      { containers: [container('a', { ports: [{ containerPort: 80, name: 'web' }] })] },
    ],
    [
      'volumeMounts by mountPath',
      { containers: [container('a', { volumeMounts: [{ mountPath: '/x', name: 'v' }] })] },
      { containers: [container('a', { volumeMounts: [{ mountPath: '/y', name: 'w' }] })] },
      {
        containers: [
          container('a', {
            volumeMounts: [
              { mountPath: '/y', name: 'w' },
              { mountPath: '/x', name: 'v' },
            ],
          }),
        ],
      },
    ],
    [
      'not tolerations, which it replaces',
      { tolerations: [{ key: 'a' }] },
      { tolerations: [{ key: 'b' }] },
      { tolerations: [{ key: 'b' }] },
    ],
    [
      'not null, which removes',
      { nodeName: 'n', hostNetwork: true },
      { nodeName: null },
      { hostNetwork: true },
    ],
  ])('merges %s', (_name, spec, patch, expected) => {
    expect(patchSpec(spec, patch)).toEqual(expected);
  });

  it('merges finalizers as a set, deletes from it, and keeps the order asked for', () => {
    const object = { metadata: { finalizers: ['a', 'b'] } };
    const added = applyStrategicMergePatch(
      object,
      { metadata: { '$setElementOrder/finalizers': ['c', 'a', 'b'], finalizers: ['c'] } },
      root,
    );
    expect(added).toEqual({ metadata: { finalizers: ['c', 'a', 'b'] } });
    const removed = applyStrategicMergePatch(
      object,
      { metadata: { '$deleteFromPrimitiveList/finalizers': ['a'] } },
      root,
    );
    expect(removed).toEqual({ metadata: { finalizers: ['b'] } });
  });

  it('obeys $setElementOrder, with items that only the server knows before those they stood before', () => {
    const spec = { containers: ['a', 'server', 'b', 'c'].map((name) => container(name)) };
    const order = ['c', 'a', 'b'].map((name) => ({ name }));
    expect(patchSpec(spec, { '$setElementOrder/containers': order })).toEqual({
      containers: ['server', 'c', 'a', 'b'].map((name) => container(name)),
    });
  });

  it('obeys $patch: delete and $patch: replace on items', () => {
    const spec = { containers: [container('a'), container('b')] };
    expect(patchSpec(spec, { containers: [{ name: 'a', $patch: 'delete' }] })).toEqual({
      containers: [container('b')],
    });
    expect(patchSpec(spec, { containers: [container('c'), { $patch: 'replace' }] })).toEqual({
      containers: [container('c')],
    });
  });

  it('obeys $patch on objects', () => {
    const spec = { securityContext: { runAsUser: 1, fsGroup: 2 } };
    expect(patchSpec(spec, { securityContext: { $patch: 'replace', runAsUser: 3 } })).toEqual({
      securityContext: { runAsUser: 3 },
    });
    expect(patchSpec(spec, { securityContext: { $patch: 'delete' } })).toEqual({
      securityContext: {},
    });
  });

  it('obeys $retainKeys, which changes the kind of a volume', () => {
    const spec = { volumes: [{ name: 'v', emptyDir: {} }] };
    const patch = {
      volumes: [{ name: 'v', $retainKeys: ['name', 'hostPath'], hostPath: { path: '/x' } }],
    };
    expect(patchSpec(spec, patch)).toEqual({ volumes: [{ name: 'v', hostPath: { path: '/x' } }] });
  });

  it('leaves no directive in what it adds', () => {
    const patch = {
      affinity: { $retainKeys: ['podAffinity'], podAffinity: { gone: null } },
      containers: [container('a', { env: [{ name: 'X', $patch: 'delete' }], image: null })],
      '$setElementOrder/containers': [{ name: 'a' }],
    };
    expect(patchSpec({}, patch)).toEqual({
      affinity: { podAffinity: {} },
      containers: [container('a', { env: [] })],
    });
  });

  it.each<[string, JsonObject]>([
    ['an unknown directive', { $patch: 'explode' }],
    ['an unknown directive on an item', { containers: [{ name: 'a', $patch: 'explode' }] }],
    ['a list of merges', { containers: [{ name: 'a', $patch: 'merge' }] }],
    ['an item without its key', { containers: [{ image: 'x' }] }],
    ['a deletion without a key', { containers: [{ $patch: 'delete' }] }],
    ['an item that is no object', { containers: ['a'] }],
    ['an order that is no list', { '$setElementOrder/containers': 'a' }],
    ['a deletion that is no list', { '$deleteFromPrimitiveList/containers': 'a' }],
    ['retained keys that are no list', { $retainKeys: 'a' }],
    ['a key that is not retained', { $retainKeys: ['nodeName'], hostNetwork: true }],
  ])('with %s is malformed', (_name, patch) => {
    expect(() => patchSpec({ containers: [container('a')] }, patch)).toThrow(PatchError);
  });
});
