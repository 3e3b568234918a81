import { describe, expect, it } from 'vitest';
import { objectAt } from '#deploy/local/control-plane/api/object-meta.ts';
import { type JsonObject, objects } from '#deploy/local/control-plane/json.ts';
import { at, createTestControlPlane, pod, refusal, WIDGET_CRD, widget } from './control-plane.ts';

const setUp = () => {
  const plane = createTestControlPlane();
  return {
    ...plane,
    widgets: plane.withWidgets(),
    maps: plane.resource('', 'configmaps'),
    pods: plane.resource('', 'pods'),
    namespaces: plane.resource('', 'namespaces'),
  };
};

describe('delete', () => {
  it('removes an object at once and says so', () => {
    const { verbs, maps } = setUp();
    const { object } = verbs.create(maps, 'default', { metadata: { name: 'a' } }, {});
    const answer = verbs.delete(maps, 'default', 'a', {}).object;
    expect(answer).toMatchObject({
      kind: 'Status',
      status: 'Success',
      details: { name: 'a', kind: 'configmaps', uid: at(object, 'metadata', 'uid') },
    });
    expect(refusal(() => verbs.get(maps, 'default', 'a')).code).toBe(404);
  });

  it('waits for the last finalizer and takes no new ones', () => {
    const { verbs, widgets } = setUp();
    const body = widget('a');
    const finalizers = ['test.example.com/hold'];
    verbs.create(widgets, 'default', { ...body, metadata: { name: 'a', finalizers } }, {});
    const marked = verbs.delete(widgets, 'default', 'a', {}).object;
    expect(marked).toMatchObject({
      kind: 'Widget',
      metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', generation: 2 },
    });
    const more = { metadata: { finalizers: [...finalizers, 'test.example.com/more'] } };
    const error = refusal(() => verbs.patch(widgets, 'default', 'a', 'merge', more, {}));
    expect(error.message).toContain('no new finalizers can be added');
    const none = [{ op: 'remove', path: '/metadata/finalizers' }];
    verbs.patch(widgets, 'default', 'a', 'json', none, {});
    expect(refusal(() => verbs.get(widgets, 'default', 'a')).code).toBe(404);
  });

  it('lets a later request choose what becomes of dependents while finalizers hold', () => {
    const { verbs, widgets } = setUp();
    const finalizers = ['test.example.com/hold'];
    const created = { ...widget('a'), metadata: { name: 'a', finalizers } };
    const { object } = verbs.create(widgets, 'default', created, {});
    const owner = { apiVersion: 'test.example.com/v1', kind: 'Widget', name: 'a' };
    const uid = String(at(object, 'metadata', 'uid'));
    const ownerReferences = [{ ...owner, uid }];
    const child = { ...widget('child'), metadata: { name: 'child', ownerReferences } };
    verbs.create(widgets, 'default', child, {});
    verbs.delete(widgets, 'default', 'a', {});
    verbs.delete(widgets, 'default', 'a', { propagationPolicy: 'Orphan' });
    expect(at(verbs.get(widgets, 'default', 'a'), 'metadata', 'finalizers')).toEqual(finalizers);
    const orphan = verbs.get(widgets, 'default', 'child');
    expect(at(orphan, 'metadata', 'ownerReferences')).toBeUndefined();
  });

  it('holds to its preconditions', () => {
    const { verbs, maps } = setUp();
    verbs.create(maps, 'default', { metadata: { name: 'a' } }, {});
    for (const preconditions of [{ uid: 'other' }, { resourceVersion: '1' }]) {
      const error = refusal(() => verbs.delete(maps, 'default', 'a', { preconditions }));
      expect(error.code).toBe(409);
      expect(error.message).toContain('Precondition failed');
    }
  });

  it('gives a pod on a node its grace, and one without a node none', () => {
    const { verbs, pods } = setUp();
    verbs.create(pods, 'default', pod('free'), {});
    verbs.delete(pods, 'default', 'free', {});
    expect(refusal(() => verbs.get(pods, 'default', 'free')).code).toBe(404);

    verbs.create(pods, 'default', pod('bound', { nodeName: 'n' }), {});
    const marked = verbs.delete(pods, 'default', 'bound', {}).object;
    expect(marked).toMatchObject({
      metadata: {
        deletionTimestamp: '2026-01-01T00:00:30Z',
        deletionGracePeriodSeconds: 30,
      },
    });
    const phase = { status: { phase: 'Running' } };
    verbs.patch(pods, 'default', 'bound', 'merge', phase, { subresource: 'status' });
    verbs.delete(pods, 'default', 'bound', { gracePeriodSeconds: 0 });
    expect(refusal(() => verbs.get(pods, 'default', 'bound')).code).toBe(404);
  });

  it('deletes what a selection finds', () => {
    const { verbs, maps } = setUp();
    for (const name of ['a', 'b', 'c']) {
      const labels = { keep: String(name === 'b') };
      verbs.create(maps, 'default', { metadata: { name, labels } }, {});
    }
    verbs.deleteCollection(maps, { namespace: 'default', labelSelector: 'keep=false' }, {});
    const left = verbs.list(maps, { namespace: 'default' });
    expect(left['items']).toMatchObject([{ metadata: { name: 'b' } }]);
  });
});

describe('the garbage collector', () => {
  const owned = (plane: ReturnType<typeof setUp>) => {
    const { verbs, widgets, maps } = plane;
    const owner = verbs.create(widgets, 'default', widget('owner'), {}).object;
    const reference = {
      apiVersion: 'test.example.com/v1',
      kind: 'Widget',
      name: 'owner',
      uid: String(at(owner, 'metadata', 'uid')),
      blockOwnerDeletion: true,
    };
    const metadata = { name: 'child', ownerReferences: [reference] };
    verbs.create(maps, 'default', { metadata }, {});
  };

  it.each(['Background', 'Foreground', undefined] as const)(
    'deletes dependents with their owner (%s)',
    (propagationPolicy) => {
      const plane = setUp();
      owned(plane);
      plane.verbs.delete(plane.widgets, 'default', 'owner', { propagationPolicy });
      expect(plane.verbs.list(plane.widgets, {})['items']).toEqual([]);
      expect(plane.verbs.list(plane.maps, {})['items']).toEqual([]);
    },
  );

  it('leaves orphans on demand', () => {
    const plane = setUp();
    owned(plane);
    plane.verbs.delete(plane.widgets, 'default', 'owner', { propagationPolicy: 'Orphan' });
    const child = plane.verbs.get(plane.maps, 'default', 'child');
    expect(at(child, 'metadata', 'ownerReferences')).toBeUndefined();
  });
});

describe('a namespace', () => {
  it('is emptied before it goes and takes nothing new meanwhile', () => {
    const { verbs, namespaces, widgets, maps } = setUp();
    verbs.create(namespaces, '', { metadata: { name: 'ns' } }, {});
    verbs.create(maps, 'ns', { metadata: { name: 'a' } }, {});
    const finalizers = ['test.example.com/hold'];
    verbs.create(widgets, 'ns', { ...widget('w'), metadata: { name: 'w', finalizers } }, {});
    verbs.delete(namespaces, '', 'ns', {});
    expect(verbs.get(namespaces, '', 'ns')).toMatchObject({ status: { phase: 'Terminating' } });
    expect(verbs.list(maps, { namespace: 'ns' })['items']).toEqual([]);
    const error = refusal(() => verbs.create(maps, 'ns', { metadata: { name: 'b' } }, {}));
    expect(error.message).toContain('because it is being terminated');
    verbs.patch(widgets, 'ns', 'w', 'merge', { metadata: { finalizers: null } }, {});
    expect(refusal(() => verbs.get(namespaces, '', 'ns')).code).toBe(404);
  });
});

describe('the namespaces of every cluster', () => {
  it.each(['default', 'kube-public', 'kube-system'])('%s may not be deleted', (name) => {
    const { verbs, namespaces } = setUp();
    const error = refusal(() => verbs.delete(namespaces, '', name, {}));
    expect([error.code, error.message]).toEqual([
      403,
      `namespaces "${name}" is forbidden: this namespace may not be deleted`,
    ]);
    expect(verbs.get(namespaces, '', name)).toMatchObject({ status: { phase: 'Active' } });
  });
});

describe('a CustomResourceDefinition', () => {
  it('is established at once and takes its objects along', () => {
    const { verbs, resource, registry, widgets } = setUp();
    const crds = resource('apiextensions.k8s.io', 'customresourcedefinitions');
    const name = 'widgets.test.example.com';
    expect(verbs.get(crds, '', name)).toMatchObject({
      status: {
        acceptedNames: { plural: 'widgets', listKind: 'WidgetList' },
        storedVersions: ['v1'],
        conditions: [
          { type: 'NamesAccepted', status: 'True' },
          { type: 'Established', status: 'True' },
        ],
      },
    });
    const finalizers = ['test.example.com/hold'];
    verbs.create(widgets, 'default', { ...widget('w'), metadata: { name: 'w', finalizers } }, {});
    verbs.delete(crds, '', name, {});
    expect(registry.find('test.example.com', 'v1', 'widgets')).toBeDefined();
    expect(refusal(() => verbs.create(widgets, 'default', widget('late'), {})).code).toBe(405);
    verbs.patch(widgets, 'default', 'w', 'merge', { metadata: { finalizers: null } }, {});
    expect(registry.find('test.example.com', 'v1', 'widgets')).toBeUndefined();
    expect(refusal(() => verbs.get(crds, '', name)).code).toBe(404);
  });

  it('takes its objects along when none of its versions is served any more', () => {
    const { verbs, resource, store, widgets } = setUp();
    const crds = resource('apiextensions.k8s.io', 'customresourcedefinitions');
    const name = 'widgets.test.example.com';
    verbs.create(widgets, 'default', widget('w'), {});
    const unserved = [{ op: 'replace', path: '/spec/versions/0/served', value: false }];
    verbs.patch(crds, '', name, 'json', unserved, {});
    verbs.delete(crds, '', name, {});
    expect(refusal(() => verbs.get(crds, '', name)).code).toBe(404);
    expect(store.count(name)).toBe(0);
  });

  it('waits for names that another one uses', () => {
    const { verbs, resource, registry } = setUp();
    const crds = resource('apiextensions.k8s.io', 'customresourcedefinitions');
    const names = { kind: 'Gadget', plural: 'gadgets', shortNames: ['wg'] };
    const spec = { ...objectAt(WIDGET_CRD, 'spec'), names };
    const name = 'gadgets.test.example.com';
    verbs.create(crds, '', { ...WIDGET_CRD, metadata: { name }, spec }, {});
    expect(verbs.get(crds, '', name)).toMatchObject({
      status: {
        conditions: [
          { type: 'NamesAccepted', status: 'False', message: '"wg" is already in use' },
          { type: 'Established', status: 'False' },
        ],
      },
    });
    expect(registry.find('test.example.com', 'v1', 'gadgets')).toBeUndefined();
    verbs.delete(crds, '', 'widgets.test.example.com', {});
    expect(registry.find('test.example.com', 'v1', 'gadgets')).toBeDefined();
  });

  it.each([
    ['another name', { metadata: { name: 'other.test.example.com' } }, 'must be spec.names.plural'],
    ['no storage version', { spec: withVersion({ storage: false }) }, 'exactly one version'],
    ['a version without a schema', { spec: withVersion({ schema: {} }) }, 'schemas are required'],
  ])('is refused with %s', (_what, changes, message) => {
    const plane = createTestControlPlane();
    const crds = plane.resource('apiextensions.k8s.io', 'customresourcedefinitions');
    const error = refusal(() => plane.verbs.create(crds, '', { ...WIDGET_CRD, ...changes }, {}));
    expect(error.code).toBe(422);
    expect(error.message).toContain(message);
  });
});

function withVersion(changes: JsonObject): JsonObject {
  const spec = objectAt(WIDGET_CRD, 'spec');
  return { ...spec, versions: objects(spec['versions']).map((one) => ({ ...one, ...changes })) };
}
