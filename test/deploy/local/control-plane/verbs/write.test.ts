import { describe, expect, it } from 'vitest';
import { at, createTestControlPlane, pod, refusal, widget } from './control-plane.ts';

const setUp = () => {
  const plane = createTestControlPlane();
  return { ...plane, widgets: plane.withWidgets(), maps: plane.resource('', 'configmaps') };
};

describe('create', () => {
  it('fills in what the server owns, with defaults and without unknown fields', () => {
    const { verbs, widgets } = setUp();
    const body = { ...widget('a', { size: 2, foo: 1 }), status: { phase: 'Faked' } };
    const { object, warnings, created } = verbs.create(widgets, 'default', body, {
      fieldManager: 'me',
    });
    expect(created).toBe(true);
    expect(warnings).toEqual(['unknown field "spec.foo"']);
    expect(object).toMatchObject({
      spec: { size: 2, colour: 'red' },
      metadata: { namespace: 'default', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
    });
    expect(object['status']).toBeUndefined();
    expect(at(object, 'spec', 'foo')).toBeUndefined();
    expect(at(object, 'metadata', 'managedFields')).toMatchObject([
      { manager: 'me', operation: 'Update', fieldsV1: { 'f:spec': { 'f:size': {} } } },
    ]);
    expect(verbs.get(widgets, 'default', 'a')).toEqual(object);
  });

  it('generates names from a prefix and tries again when one is taken', () => {
    const { verbs, maps } = setUp();
    const body = { metadata: { generateName: 'x-' } };
    const names = Array.from({ length: 10 }, () =>
      at(verbs.create(maps, 'default', body, {}).object, 'metadata', 'name'),
    );
    expect(new Set(names).size).toBe(10);
    for (const name of names) expect(name).toMatch(/^x-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
  });

  it('keeps nothing of a dry run', () => {
    const { verbs, maps, store } = setUp();
    const before = store.revision;
    const { object } = verbs.create(maps, 'default', { metadata: { name: 'a' } }, { dryRun: true });
    expect(at(object, 'metadata', 'uid')).toMatch(/^uid-/);
    expect(store.revision).toBe(before);
  });

  it('gives a pod the defaults of the real server', () => {
    const { verbs, resource } = setUp();
    const { object } = verbs.create(resource('', 'pods'), 'default', pod('p'), {});
    expect(object).toMatchObject({
      spec: {
        restartPolicy: 'Always',
        terminationGracePeriodSeconds: 30,
        dnsPolicy: 'ClusterFirst',
        schedulerName: 'default-scheduler',
        serviceAccountName: 'default',
        containers: [{ imagePullPolicy: 'IfNotPresent', terminationMessagePolicy: 'File' }],
      },
      status: { phase: 'Pending', qosClass: 'BestEffort' },
    });
  });

  const name = (value: string) => ({ metadata: { name: value } });
  it.each([
    ['a name in upper case', name('A'), 'default', 422, 'a lowercase RFC 1123 subdomain must'],
    ['no name', { metadata: {} }, 'default', 422, 'name or generateName is required'],
    ['an absent namespace', name('a'), 'gone', 404, 'namespaces "gone" not found'],
    ['another namespace', { metadata: { name: 'a', namespace: 'b' } }, 'default', 400, 'namespace'],
    [
      'a resourceVersion',
      { metadata: { name: 'a', resourceVersion: '1' } },
      'default',
      500,
      'should not be set',
    ],
    [
      'a bad label',
      { metadata: { name: 'a', labels: { k: '-' } } },
      'default',
      422,
      'metadata.labels: Invalid value: "-"',
    ],
    [
      'a bad annotation',
      { metadata: { name: 'a', annotations: { 'a b': '' } } },
      'default',
      422,
      'metadata.annotations: Invalid value: "a b"',
    ],
    [
      'another kind',
      { kind: 'Secret', ...name('a') },
      'default',
      400,
      'cannot be handled as a ConfigMap',
    ],
    [
      'another version',
      { apiVersion: 'v2', ...name('a') },
      'default',
      400,
      'does not match the expected API version (v1)',
    ],
  ])('refuses %s', (_what, body, namespace, code, message) => {
    const { verbs, maps } = setUp();
    const error = refusal(() => verbs.create(maps, namespace, body, {}));
    expect(error.code).toBe(code);
    expect(error.message).toContain(message);
  });

  it('refuses a taken name', () => {
    const { verbs, widgets } = setUp();
    verbs.create(widgets, 'default', widget('a'), {});
    const error = refusal(() => verbs.create(widgets, 'default', widget('a'), {}));
    expect(error.status).toMatchObject({
      code: 409,
      reason: 'AlreadyExists',
      message: 'widgets.test.example.com "a" already exists',
    });
  });

  it('names every field that the schema refuses', () => {
    const { verbs, widgets } = setUp();
    const body = widget('a', { size: 0, colour: 'green' });
    const { status } = refusal(() => verbs.create(widgets, 'default', body, {}));
    expect(status).toMatchObject({
      code: 422,
      reason: 'Invalid',
      details: {
        name: 'a',
        group: 'test.example.com',
        kind: 'Widget',
        causes: expect.arrayContaining([
          expect.objectContaining({ field: 'spec.size', reason: 'FieldValueInvalid' }),
          expect.objectContaining({ field: 'spec.colour', reason: 'FieldValueNotSupported' }),
        ]),
      },
    });
    expect(status['message']).toContain('Widget.test.example.com "a" is invalid: ');
  });

  it('refuses unknown fields when validation is strict and ignores them on demand', () => {
    const { verbs, widgets } = setUp();
    const body = widget('a', { size: 1, foo: 1 });
    const error = refusal(() =>
      verbs.create(widgets, 'default', body, { fieldValidation: 'Strict' }),
    );
    expect(error.code).toBe(400);
    expect(error.message).toContain('strict decoding error: unknown field "spec.foo"');
    const ignored = verbs.create(widgets, 'default', body, { fieldValidation: 'Ignore' });
    expect(ignored.warnings).toEqual([]);
  });
});

describe('update', () => {
  it('counts generations for the spec alone and writes nothing for nothing', () => {
    const { verbs, widgets, store } = setUp();
    const { object } = verbs.create(widgets, 'default', widget('a'), {});
    const revision = store.revision;
    const same = verbs.update(widgets, 'default', 'a', object, {});
    expect(same.object).toEqual(object);
    expect(store.revision).toBe(revision);

    const labelled = verbs.patch(
      widgets,
      'default',
      'a',
      'merge',
      { metadata: { labels: { a: 'b' } } },
      {},
    ).object;
    expect(at(labelled, 'metadata', 'generation')).toBe(1);
    const next = { ...labelled, spec: { size: 5 } };
    const updated = verbs.update(widgets, 'default', 'a', next, {}).object;
    expect(at(updated, 'metadata', 'generation')).toBe(2);
    expect(at(updated, 'spec', 'colour')).toBe('red');
  });

  it('refuses a stale or missing resourceVersion and another uid', () => {
    const { verbs, widgets } = setUp();
    const { object } = verbs.create(widgets, 'default', widget('a'), {});
    verbs.patch(widgets, 'default', 'a', 'merge', { spec: { size: 2 } }, {});
    const stale = refusal(() => verbs.update(widgets, 'default', 'a', object, {}));
    expect(stale.code).toBe(409);
    expect(stale.message).toContain('the object has been modified');
    const blind = refusal(() => verbs.update(widgets, 'default', 'a', widget('a'), {}));
    expect(blind.message).toContain('Invalid value: 0x0: must be specified for an update');
    const other = { metadata: { uid: 'other' } };
    const replaced = refusal(() => verbs.patch(widgets, 'default', 'a', 'merge', other, {}));
    expect(replaced.message).toContain('Precondition failed: UID in precondition: other');
  });

  it('lets no object grow beyond what the real store takes', () => {
    const { verbs, maps } = setUp();
    const half = 'x'.repeat(768 * 1024);
    verbs.create(maps, 'default', { metadata: { name: 'a' }, data: { one: half } }, {});
    const grow = () => verbs.patch(maps, 'default', 'a', 'merge', { data: { two: half } }, {});
    expect(refusal(grow)).toMatchObject({
      code: 413,
      message: 'etcdserver: request is too large',
    });
    const both = { metadata: { name: 'b' }, data: { one: half, two: half } };
    expect(refusal(() => verbs.create(maps, 'default', both, {})).code).toBe(413);
    expect(at(verbs.get(maps, 'default', 'a'), 'data', 'two')).toBeUndefined();
  });

  it('keeps spec and status apart', () => {
    const { verbs, widgets } = setUp();
    const { object } = verbs.create(widgets, 'default', widget('a'), {});
    const status = { phase: 'Ready' };
    const body = { ...object, spec: { size: 9 }, status };
    const reported = verbs.update(widgets, 'default', 'a', body, {
      subresource: 'status',
      fieldManager: 'agent',
    }).object;
    expect(reported).toMatchObject({ spec: { size: 1 }, status, metadata: { generation: 1 } });
    expect(at(reported, 'metadata', 'managedFields')).toContainEqual(
      expect.objectContaining({ manager: 'agent', subresource: 'status' }),
    );
    const main = verbs.patch(
      widgets,
      'default',
      'a',
      'merge',
      { spec: { size: 3 }, status: { phase: 'X' } },
      {},
    ).object;
    expect(main).toMatchObject({ spec: { size: 3 }, status });
  });

  it('asks transition rules', () => {
    const { verbs, widgets } = setUp();
    verbs.create(widgets, 'default', widget('a', { size: 1, mode: 'x' }), {});
    const error = refusal(() =>
      verbs.patch(widgets, 'default', 'a', 'merge', { spec: { mode: 'y' } }, {}),
    );
    expect(error.message).toContain('mode is immutable');
  });

  it('creates a lease that is not there, but no widget', () => {
    const { verbs, widgets, resource } = setUp();
    const leases = resource('coordination.k8s.io', 'leases');
    expect(verbs.update(leases, 'default', 'l', { metadata: { name: 'l' } }, {}).created).toBe(
      true,
    );
    expect(refusal(() => verbs.update(widgets, 'default', 'a', widget('a'), {})).code).toBe(404);
  });

  it('shows one event in both of its groups', () => {
    const { verbs, resource } = setUp();
    const event = {
      metadata: { name: 'e' },
      eventTime: '2026-01-01T00:00:00.000000Z',
      reportingController: 'agent',
      reportingInstance: 'agent-1',
      action: 'Create',
      reason: 'Created',
      type: 'Normal',
      note: 'made it',
      regarding: { kind: 'Pod', name: 'p', namespace: 'default' },
    };
    verbs.create(resource('events.k8s.io', 'events'), 'default', event, {});
    const core = verbs.get(resource('', 'events'), 'default', 'e');
    expect(core).toMatchObject({
      apiVersion: 'v1',
      message: 'made it',
      involvedObject: { name: 'p' },
      reportingComponent: 'agent',
    });
    const series = { series: { count: 2, lastObservedTime: '2026-01-01T00:01:00.000000Z' } };
    const events = resource('events.k8s.io', 'events');
    const patched = verbs.patch(events, 'default', 'e', 'merge', series, {}).object;
    expect(patched).toMatchObject({ note: 'made it', series: { count: 2 } });
  });
});
