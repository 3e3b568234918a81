import { afterEach, beforeEach, expect, it } from 'vitest';
import { KubeError } from '#deploy/local/kube/client.ts';
import type { LocalNode } from '#deploy/local/node/node.ts';
import { eventually } from '#test/integration/eventually.ts';
import { type NodeWorld, openNodeWorld } from './local-node.ts';

const SLEEP = 'exec sleep 300';

let world: NodeWorld;
let node: LocalNode;
beforeEach(async () => {
  world = await openNodeWorld();
  node = world.startNode();
});
afterEach(() => world.close());

const whenRunning = (name: string) =>
  eventually(async () => {
    const pod = await world.pod(name);
    expect(pod).toMatchObject({ phase: 'Running', ready: true });
    return pod;
  });
const whenGone = (name: string) =>
  eventually(() => expect(world.pod(name)).rejects.toMatchObject({ status: 404 }));

it('binds a pod, gives it an address and reports it ready', async () => {
  await world.createPod('a', SLEEP);
  await world.createPod('b', SLEEP);
  const [a, b] = await Promise.all([whenRunning('a'), whenRunning('b')]);
  expect(a.ip).toMatch(/^127\.42\.\d+\.\d+$/);
  expect(b.ip).not.toBe(a.ip);
  expect(a.object).toMatchObject({ spec: { nodeName: 'local' }, status: { hostIP: '127.0.0.1' } });
  expect(world.processes()).toHaveLength(2);
});

it.each([
  ['exit 0', 'Succeeded', 0],
  ['exit 3', 'Failed', 3],
  ['kill -9 $$', 'Failed', 137],
])('a pod that is never restarted and does `%s` is %s', async (script, phase, exitCode) => {
  await world.createPod('once', script);
  await eventually(async () => {
    const pod = await world.pod('once');
    expect(pod).toMatchObject({ phase, container: { state: { terminated: { exitCode } } } });
  });
  expect(world.processes()).toEqual([]);
});

it('a container that dies is restarted after a back-off when the policy says so', async () => {
  await world.createPod('always', 'exit 1', { restartPolicy: 'Always' });
  await eventually(async () => {
    const { phase, container } = await world.pod('always');
    expect(phase).toBe('Running');
    expect(container).toMatchObject({
      state: { waiting: { reason: 'CrashLoopBackOff' } },
      lastState: { terminated: { exitCode: 1 } },
      restartCount: 0,
    });
  });
});

it('an unknown image leaves the pod Pending and says so in an event', async () => {
  await world.createPod('odd', SLEEP, {}, { image: 'nginx:1' });
  await eventually(async () => {
    const { phase, container } = await world.pod('odd');
    expect(phase).toBe('Pending');
    expect(container).toMatchObject({ state: { waiting: { reason: 'ErrImagePull' } } });
  });
  await eventually(async () => {
    const events = await world.client.request({ path: '/api/v1/namespaces/default/events' });
    expect(JSON.stringify(events)).toContain('image \\"nginx:1\\" is not one');
  });
});

it('a deleted pod gets its grace, and is gone only when its process is', async () => {
  const script = `trap 'sleep 0.4; exit 0' TERM; while :; do sleep 0.05; done`;
  const path = await world.createPod('slow', script);
  await whenRunning('slow');
  await world.client.request({ method: 'DELETE', path });
  const dying = await world.pod('slow');
  expect(dying.object).toHaveProperty('metadata.deletionTimestamp');
  expect(world.processes().length).toBeGreaterThan(0);
  await whenGone('slow');
  expect(world.processes()).toEqual([]);
});

it('a process that ignores SIGTERM is killed when the grace is over', async () => {
  const script = `trap '' TERM; while :; do sleep 0.05; done`;
  const path = await world.createPod('deaf', script, { terminationGracePeriodSeconds: 1 });
  await whenRunning('deaf');
  await world.client.request({ method: 'DELETE', path });
  await whenGone('deaf');
  expect(world.processes()).toEqual([]);
});

it('a pod that is removed by force loses its process too', async () => {
  const path = await world.createPod('forced', SLEEP);
  await whenRunning('forced');
  await world.client.request({ method: 'DELETE', path, body: { gracePeriodSeconds: 0 } });
  await whenGone('forced');
  await eventually(() => expect(world.processes()).toEqual([]));
});

it('a ConfigMap that comes after its pod is waited for, then mounted', async () => {
  const volumes = [{ name: 'config', configMap: { name: 'late' } }];
  const volumeMounts = [{ name: 'config', mountPath: '/etc/x', subPath: 'answer' }];
  await world.createPod('mounts', 'exit $(cat "$1")', { volumes }, { volumeMounts });
  await eventually(async () => {
    expect((await world.pod('mounts')).ip).not.toBe('');
  });
  expect((await world.pod('mounts')).phase).toBe('Pending');
  await world.client.request({
    method: 'POST',
    path: '/api/v1/namespaces/default/configmaps',
    body: {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'late' },
      data: { answer: '42' },
    },
  });
  await eventually(async () => {
    const { container } = await world.pod('mounts');
    expect(container).toMatchObject({ state: { terminated: { exitCode: 42 } } });
  });
});

it('environment variables come from values, Secrets and the pod itself', async () => {
  await world.client.request({
    method: 'POST',
    path: '/api/v1/namespaces/default/secrets',
    body: {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's' },
      data: { code: Buffer.from('7').toString('base64') },
    },
  });
  const env = [
    { name: 'CODE', valueFrom: { secretKeyRef: { name: 's', key: 'code' } } },
    { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    { name: 'BOTH', value: '$(NAME)-$(CODE)' },
  ];
  await world.createPod('env', 'test "$BOTH" = env-7 && exit 9', {}, { env });
  await eventually(async () => {
    const { container } = await world.pod('env');
    expect(container).toMatchObject({ state: { terminated: { exitCode: 9 } } });
  });
});

it('what it cannot run is refused, not run half', async () => {
  await world.createPod('host', SLEEP, { volumes: [{ name: 'h', hostPath: { path: '/' } }] });
  await eventually(async () => {
    const { phase, object } = await world.pod('host');
    expect(phase).toBe('Failed');
    expect(object).toHaveProperty('status.reason', 'Unsupported');
  });
});

it('a stop ends every process; the next node starts the pods again at their addresses', async () => {
  await world.createPod('kept', SLEEP);
  await world.createPod('done', 'exit 0');
  const before = await whenRunning('kept');
  await eventually(async () => expect((await world.pod('done')).phase).toBe('Succeeded'));
  await node.stop();
  expect(world.processes()).toEqual([]);
  expect((await world.pod('kept')).phase).toBe('Running');
  world.startNode();
  await eventually(() => expect(world.processes()).toHaveLength(1));
  expect((await whenRunning('kept')).ip).toBe(before.ip);
  expect((await world.pod('done')).phase).toBe('Succeeded');
});

it('a pod that was deleted while no node ran is gone when one runs again', async () => {
  const path = await world.createPod('orphan', SLEEP);
  await whenRunning('orphan');
  await node.stop();
  await world.client.request({ method: 'DELETE', path });
  await expect(world.pod('orphan')).resolves.toMatchObject({ phase: 'Running' });
  world.startNode();
  await whenGone('orphan');
  expect(world.processes()).toEqual([]);
});

it('a bound pod cannot be bound again', async () => {
  const path = await world.createPod('bound', SLEEP);
  await whenRunning('bound');
  const again = world.client.request({
    method: 'POST',
    path: `${path}/binding`,
    body: { apiVersion: 'v1', kind: 'Binding', target: { kind: 'Node', name: 'other' } },
  });
  await expect(again).rejects.toThrow('is already assigned to node "local"');
  await expect(again).rejects.toBeInstanceOf(KubeError);
});

it('a stop does not wait for the long grace of a pod that is being deleted', async () => {
  const script = `trap '' TERM; while :; do sleep 0.05; done`;
  const path = await world.createPod('deaf', script, { terminationGracePeriodSeconds: 600 });
  await whenRunning('deaf');
  await world.client.request({ method: 'DELETE', path });
  await eventually(async () => {
    expect((await world.pod('deaf')).object).toHaveProperty('metadata.deletionTimestamp');
  });
  await node.stop();
  expect(world.processes()).toEqual([]);
  world.startNode();
  await whenGone('deaf');
}, 20_000);

it('a sub-path that leads out of its volume is not mounted, and an event says so', async () => {
  const volumes = [{ name: 'scratch', emptyDir: {} }];
  const volumeMounts = [{ name: 'scratch', mountPath: '/x', subPath: '../../..' }];
  await world.createPod('climber', SLEEP, { volumes }, { volumeMounts });
  await eventually(async () => {
    const events = await world.client.request({ path: '/api/v1/namespaces/default/events' });
    expect(JSON.stringify(events)).toContain('leaves the volume');
  });
  expect(world.processes()).toEqual([]);
});
