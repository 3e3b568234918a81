import { describe, expect, test } from 'vitest';
import { parseId } from '#agent/providers/gcp/id.ts';
import { markProblem, proxyOf, withoutMark } from '#agent/providers/gcp/labels.ts';
import { instanceSchema } from '#agent/providers/gcp/resources.ts';
import { instanceFrom, isLeaving, stateOf } from '#agent/providers/gcp/state.ts';
import { isMadeFor } from '#agent/providers/mark.ts';

const LABELS = {
  'proxy-operator-managed': 'true',
  'proxy-operator-uid': 'uid-1',
  'proxy-operator-installation': 'here',
};
const resource = (fields: object = {}) =>
  instanceSchema.parse({
    name: 'proxy-a',
    zone: 'https://www.googleapis.com/compute/v1/projects/p/zones/z-1',
    status: 'RUNNING',
    labels: LABELS,
    description: 'egress proxy crawl/one',
    creationTimestamp: '2026-01-01T00:00:00.000-08:00',
    networkInterfaces: [{ networkIP: '10.0.0.2', accessConfigs: [{ natIP: '203.0.113.9' }] }],
    ...fields,
  });

describe('the state of an instance', () => {
  test.each([
    ['PENDING', 'Provisioning'],
    ['PROVISIONING', 'Provisioning'],
    ['STAGING', 'Provisioning'],
    ['REPAIRING', 'Provisioning'],
    ['RUNNING', 'Running'],
    ['PENDING_STOP', 'Stopped'],
    ['STOPPING', 'Stopped'],
    ['STOPPED', 'Stopped'],
    ['SUSPENDING', 'Stopped'],
    ['SUSPENDED', 'Stopped'],
    ['DEPROVISIONING', 'Stopped'],
    ['TERMINATED', 'Terminated'],
    ['HIBERNATING', 'Stopped'],
    ['constructor', 'Stopped'],
    ['', 'Stopped'],
  ])('%s is %s', (status, state) => {
    expect(stateOf(status, '203.0.113.9')).toBe(state);
  });

  test('is not Running without the address that is used', () => {
    const internal = resource({ networkInterfaces: [{ networkIP: '10.0.0.2' }] });
    expect(instanceFrom(internal, 'z-1', 'external').state).toBe('Provisioning');
    expect(instanceFrom(internal, 'z-1', 'internal')).toMatchObject({
      state: 'Running',
      ip: '10.0.0.2',
    });
    const none = resource({ networkInterfaces: null });
    expect(instanceFrom(none, 'z-1', 'external')).not.toHaveProperty('ip');
    const empty = resource({ networkInterfaces: [{ networkIP: '', accessConfigs: [{}] }] });
    expect(instanceFrom(empty, 'z-1', 'internal').state).toBe('Provisioning');
  });

  test('tells what leaves from what does not', () => {
    expect(isLeaving({ status: 'STOPPING' })).toBe(true);
    expect(isLeaving({ status: 'TERMINATED' })).toBe(false);
  });
});

describe('an instance', () => {
  test('is read back with mark, time, Proxy and address', () => {
    expect(instanceFrom(resource(), 'elsewhere', 'external')).toEqual({
      id: 'zones/z-1/instances/proxy-a',
      state: 'Running',
      uid: 'uid-1',
      installation: 'here',
      createdAtMs: Date.parse('2026-01-01T08:00:00Z'),
      detail: 'RUNNING',
      ip: '203.0.113.9',
      proxy: { namespace: 'crawl', name: 'one' },
    });
  });

  test('with an unreadable time is as old as can be, and without labels is nobody’s', () => {
    const bare = resource({
      creationTimestamp: 'soon',
      labels: null,
      description: 'mine',
      zone: '',
    });
    const instance = instanceFrom(bare, 'z-2', 'external');
    expect(instance).toMatchObject({ createdAtMs: 0, uid: '', installation: '' });
    expect(instance.id).toBe('zones/z-2/instances/proxy-a');
    expect(instance).not.toHaveProperty('proxy');
  });

  test('tells the API’s explanation of its status', () => {
    const instance = instanceFrom(
      resource({ status: 'TERMINATED', statusMessage: 'full' }),
      'z',
      'external',
    );
    expect(instance.detail).toBe('TERMINATED: full');
  });
});

describe('labels', () => {
  test.each([
    [{ uid: 'uid-1', installation: 'here' }, true],
    [{ uid: 'uid-2', installation: 'here' }, false],
    [{ uid: 'uid-1', installation: 'there' }, false],
  ])('of %j: %s', (mark, made) => {
    expect(isMadeFor(mark, LABELS)).toBe(made);
  });

  test('without the managed mark are nobody’s', () => {
    const { 'proxy-operator-managed': _, ...rest } = LABELS;
    expect(isMadeFor({ uid: 'uid-1', installation: 'here' }, rest)).toBe(false);
  });

  test('lose the mark and nothing else', () => {
    expect(withoutMark({ ...LABELS, team: 'crawl' })).toEqual({ team: 'crawl' });
  });

  test.each([
    ['ok_-9', undefined],
    ['Upper', 'the installation "Upper" cannot be a label: 1 to 63 of a-z, 0-9, "-" and "_"'],
    ['a.b', 'the installation "a.b" cannot be a label: 1 to 63 of a-z, 0-9, "-" and "_"'],
    ['', 'the installation "" cannot be a label: 1 to 63 of a-z, 0-9, "-" and "_"'],
  ])('cannot hold every installation: %j', (installation, problem) => {
    expect(markProblem({ uid: 'u', installation })).toBe(problem);
  });

  test('descriptions name a Proxy only in our own words', () => {
    expect(proxyOf('egress proxy a/b.c')).toEqual({ namespace: 'a', name: 'b.c' });
    expect(proxyOf('egress proxy a/b/c')).toBeUndefined();
    expect(proxyOf('')).toBeUndefined();
  });
});

test.each([
  ['zones/europe-west1-b/instances/proxy-a', { zone: 'europe-west1-b', name: 'proxy-a' }],
  ['zones/europe-west1-b/instances/', undefined],
  ['zones/europe-west1-b/instances/a/b', undefined],
  ['zones/../instances/a', undefined],
  ['zones/z/instances/A', undefined],
  ['zones/z/instances/a?b', undefined],
  ['projects/p/zones/z/instances/a', undefined],
  ['', undefined],
])('id %j', (id, ref) => {
  expect(parseId(id)).toEqual(ref);
});
