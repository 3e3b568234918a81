import { describe, expect, test } from 'vitest';
import { formatId, parseId } from '#agent/providers/kubernetes/id.ts';
import { instanceFromPod, parsePod } from '#agent/providers/kubernetes/state.ts';

const ready = { conditions: [{ type: 'Ready', status: 'True' }] };
const unready = { conditions: [{ type: 'Ready', status: 'False' }] };
const podIP = '10.1.2.3';

function podWith(status: object | undefined, metadata: object = {}) {
  return parsePod({
    metadata: {
      namespace: 'crawl',
      name: 'proxy-a',
      uid: 'pod-uid',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: {
        'proxy-operator-managed': 'true',
        'proxy-operator-uid': 'uid-1',
        'proxy-operator-installation': 'here',
      },
      annotations: { 'crawl.example.com/proxy': 'one' },
      ...metadata,
    },
    ...(status === undefined ? {} : { status }),
  });
}

const waiting = { containerStatuses: [{ state: { waiting: { reason: 'ErrImagePull' } } }] };
const ended = {
  containerStatuses: [{ state: { terminated: { reason: 'Error', exitCode: 137 } } }],
};

describe('state of an instance', () => {
  test.each([
    [undefined, 'Provisioning', 'Pending'],
    [{}, 'Provisioning', 'Pending'],
    [{ phase: 'Pending' }, 'Provisioning', 'Pending'],
    [{ phase: 'Pending', podIP, ...waiting }, 'Provisioning', 'Pending: ErrImagePull'],
    [{ phase: 'Running', ...ready }, 'Provisioning', 'Running'],
    [{ phase: 'Running', podIP: '', ...ready }, 'Provisioning', 'Running'],
    [{ phase: 'Running', podIP }, 'Provisioning', 'Running'],
    [{ phase: 'Running', podIP, ...unready }, 'Provisioning', 'Running'],
    [{ phase: 'Running', podIP, ...ready }, 'Running', 'Running'],
    [{ phase: 'Succeeded', podIP }, 'Terminated', 'Succeeded'],
    [{ phase: 'Failed', podIP, ...ended }, 'Terminated', 'Failed: Error, exit code 137'],
    [{ phase: 'Failed', reason: 'Evicted' }, 'Terminated', 'Failed: Evicted'],
    [{ phase: 'Unknown', reason: 'NodeLost' }, 'Terminated', 'Unknown: NodeLost'],
    [{ phase: 'Hibernating', podIP, ...ready }, 'Stopped', 'Hibernating'],
  ])('of a pod with %j is %s', (status, state, detail) => {
    expect(instanceFromPod(podWith(status))).toMatchObject({ state, detail });
  });

  test('a pod that is being deleted is there, and never Running', () => {
    const deletionTimestamp = '2026-01-01T00:01:00Z';
    const pod = podWith({ phase: 'Running', podIP, ...ready }, { deletionTimestamp });
    expect(instanceFromPod(pod)).toMatchObject({ state: 'Stopped', detail: 'Terminating' });
  });

  test('id, owner, address and age are read back from the pod', () => {
    expect(instanceFromPod(podWith({ phase: 'Running', podIP, ...ready }))).toEqual({
      id: 'crawl/proxy-a',
      state: 'Running',
      ip: podIP,
      uid: 'uid-1',
      installation: 'here',
      proxy: { namespace: 'crawl', name: 'one' },
      createdAtMs: Date.UTC(2026, 0, 1),
      detail: 'Running',
    });
    const bare = podWith(undefined, { labels: null, creationTimestamp: null });
    expect(instanceFromPod(bare)).toMatchObject({ uid: '', installation: '', createdAtMs: 0 });
  });
});

describe('ids', () => {
  test('are parsed back', () => {
    const ref = { namespace: 'crawl', name: 'proxy-a' };
    expect(parseId(formatId(ref))).toEqual(ref);
  });

  test.each([
    '',
    'a',
    '/',
    'a/',
    '/a',
    'a/b/c',
    'A/b',
    'a/B',
    'a/..',
    'a b/c',
    'zones/a/instances/b',
  ])('%j is none', (id) => {
    expect(parseId(id)).toBeUndefined();
  });
});
