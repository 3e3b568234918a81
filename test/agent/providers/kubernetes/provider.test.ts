import { beforeEach, describe, expect, test } from 'vitest';
import type { KubeRequest } from '#agent/kube/client.ts';
import { createKubernetesProvider } from '#agent/providers/kubernetes/provider.ts';
import { FakeKubeObjects, refusal } from '#test/fakes/kube-objects.ts';
import { configWith, request } from './block.ts';

const ID = 'crawl/proxy-abcdefghijklmnop';
const { signal } = new AbortController();

let kube: FakeKubeObjects;
let provider: ReturnType<typeof createKubernetesProvider>;
beforeEach(() => {
  kube = new FakeKubeObjects();
  provider = createKubernetesProvider(configWith(), { client: kube });
});

const configMap = () => kube.objects.get(`configmaps/${ID}`);
const podUid = () => kube.pod(request.name).metadata.uid;
const failOnce = (method: string, plural: string, code: number, reason: string, message = 'no') => {
  kube.before = (sent: KubeRequest) => {
    if ((sent.method ?? 'GET') !== method || !sent.path.includes(`/${plural}`)) return;
    kube.before = () => {};
    throw refusal(sent, code, reason, message);
  };
};

describe('create', () => {
  test('makes the marked pod first, then its configuration, owned by the pod', async () => {
    expect(await provider.create(request, signal)).toBe(ID);
    expect(kube.requests).toEqual(['POST pods', 'POST configmaps']);
    expect(kube.pod(request.name).metadata.labels).toMatchObject({
      'proxy-operator-managed': 'true',
      'proxy-operator-uid': 'uid-1',
    });
    expect(configMap()?.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Pod', name: request.name, uid: podUid() },
    ]);
  });

  test('repeated answers the same and makes nothing more', async () => {
    await provider.create(request, signal);
    const before = structuredClone([...kube.objects]);
    expect(await provider.create(request, signal)).toBe(ID);
    expect([...kube.objects]).toEqual(before);
  });

  test('that was cut off between its two writes is completed by the next', async () => {
    failOnce('POST', 'configmaps', 503, 'ServiceUnavailable');
    await expect(provider.create(request, signal)).rejects.toMatchObject({ class: 'Transient' });
    expect(configMap()).toBeUndefined();
    expect(await provider.create(request, signal)).toBe(ID);
    expect(configMap()?.metadata.ownerReferences?.[0]?.uid).toBe(podUid());
  });

  test('takes the place of a configuration that an earlier pod left behind', async () => {
    await provider.create(request, signal);
    kube.objects.delete(`pods/${ID}`);
    await provider.create({ ...request, port: 4000 }, signal);
    expect(configMap()?.metadata.ownerReferences?.[0]?.uid).toBe(podUid());
    expect(JSON.stringify(configMap()?.data)).toContain('http_port 4000');
  });

  test.each([
    ['pod of another Proxy', 'pods', 'uid', 'other'],
    ['pod of another installation', 'pods', 'installation', 'other'],
    ['pod without the mark', 'pods', 'managed', 'false'],
    ['ConfigMap of another Proxy', 'configmaps', 'uid', 'other'],
    ['ConfigMap of another installation', 'configmaps', 'installation', 'other'],
  ])('refuses a %s under its name', async (_what, plural, label, value) => {
    await provider.create(request, signal);
    const object = kube.objects.get(`${plural}/${ID}`);
    if (object === undefined) throw new Error('not made');
    object.metadata.labels = { ...object.metadata.labels, [`proxy-operator-${label}`]: value };
    object.metadata.ownerReferences = [];
    await expect(provider.create(request, signal)).rejects.toMatchObject({
      class: 'Permanent',
      message: expect.stringMatching(/belongs to somebody else/),
    });
  });

  test('goes on when the configuration of an earlier pod is collected meanwhile', async () => {
    await provider.create(request, signal);
    kube.objects.delete(`pods/${ID}`);
    kube.before = ({ method, path }) => {
      if (method === 'DELETE' && path.includes('/configmaps')) {
        kube.objects.delete(`configmaps/${ID}`);
      }
    };
    expect(await provider.create(request, signal)).toBe(ID);
    expect(configMap()?.metadata.ownerReferences?.[0]?.uid).toBe(podUid());
  });

  test('never adopts a pod that is being deleted', async () => {
    await provider.create(request, signal);
    kube.slowDeletion = true;
    await provider.delete(ID, signal);
    await expect(provider.create(request, signal)).rejects.toMatchObject({ class: 'Transient' });
  });

  test('tells quota from a lack of rights', async () => {
    const message = 'pods is forbidden: exceeded quota: q';
    failOnce('POST', 'pods', 403, 'Forbidden', message);
    await expect(provider.create(request, signal)).rejects.toMatchObject({
      class: 'QuotaExceeded',
      provider: 'local',
    });
    failOnce('POST', 'pods', 403, 'Forbidden', 'pods is forbidden: cannot create');
    await expect(provider.create(request, signal)).rejects.toMatchObject({ class: 'Permanent' });
  });

  test('puts user-data nowhere', async () => {
    await provider.create({ ...request, cloudInit: 'SENTINEL' }, signal);
    expect(JSON.stringify([...kube.objects])).not.toContain('SENTINEL');
  });
});

describe('get', () => {
  test('says NotFound when the pod is gone, and only then', async () => {
    await expect(provider.get(ID, signal)).rejects.toMatchObject({ class: 'NotFound' });
    failOnce('GET', 'pods', 503, 'ServiceUnavailable');
    await expect(provider.get(ID, signal)).rejects.toMatchObject({ class: 'Transient' });
    await provider.create(request, signal);
    kube.slowDeletion = true;
    await provider.delete(ID, signal);
    expect(await provider.get(ID, signal)).toMatchObject({ id: ID, state: 'Stopped' });
  });

  test('calls a malformed id Permanent without asking', async () => {
    await expect(provider.get('zones/a/b', signal)).rejects.toMatchObject({ class: 'Permanent' });
    expect(kube.requests).toEqual([]);
  });

  test('ends with the signal', async () => {
    const aborted = AbortSignal.abort(new Error('stop'));
    await expect(provider.get(ID, aborted)).rejects.toMatchObject({ class: 'Transient' });
  });
});

describe('delete', () => {
  test('is repeatable, and asks the server once for a slow pod', async () => {
    await provider.create(request, signal);
    kube.slowDeletion = true;
    for (let time = 0; time < 3; time++) await provider.delete(ID, signal);
    expect(kube.requests.filter((each) => each === 'DELETE pods')).toHaveLength(1);
    kube.objects.delete(`pods/${ID}`);
    await provider.delete(ID, signal);
  });

  test('leaves a pod without our mark alone', async () => {
    await provider.create(request, signal);
    kube.pod(request.name).metadata.labels = {};
    await expect(provider.delete(ID, signal)).rejects.toMatchObject({ class: 'Permanent' });
    expect(kube.objects.has(`pods/${ID}`)).toBe(true);
  });

  test('never takes a pod that was made under the name meanwhile', async () => {
    await provider.create(request, signal);
    kube.before = ({ method }) => {
      if (method === 'DELETE') kube.pod(request.name).metadata.uid = 'another';
    };
    await expect(provider.delete(ID, signal)).rejects.toMatchObject({ class: 'Transient' });
    expect(kube.objects.has(`pods/${ID}`)).toBe(true);
  });
});

describe('disown', () => {
  test('takes off the whole mark and nothing else; a pod that is gone is fine', async () => {
    const patches: KubeRequest[] = [];
    kube.before = (sent) => {
      if (sent.method !== 'PATCH') return;
      patches.push(sent);
      throw refusal(sent, 404, 'NotFound', `pods "${request.name}" not found`);
    };
    await provider.disown(ID, signal);
    const labels = {
      'proxy-operator-managed': null,
      'proxy-operator-uid': null,
      'proxy-operator-installation': null,
    };
    expect(patches).toMatchObject([
      { contentType: 'application/merge-patch+json', body: { metadata: { labels } } },
    ]);
  });
});

describe('a 404 that is not the API server’s', () => {
  test.each(['get', 'delete', 'disown'] as const)('does not end a machine in %s', async (op) => {
    await provider.create(request, signal);
    failOnce(op === 'disown' ? 'PATCH' : 'GET', 'pods', 404, '', '404 page not found');
    await expect(provider[op](ID, signal)).rejects.toMatchObject({ class: 'Transient', op });
  });
});

describe('the log', () => {
  test('tells each call once, with its outcome and without user-data', async () => {
    const lines: object[] = [];
    const log = { debug: (fields: object) => void lines.push(fields) };
    provider = createKubernetesProvider(configWith(), { client: kube, log });
    await provider.create({ ...request, cloudInit: 'SENTINEL' }, signal);
    await provider.get(ID, signal);
    await provider.listByTag(signal);
    await expect(provider.get('x', signal)).rejects.toThrow();
    expect(lines).toMatchObject([
      { provider: 'local', op: 'create', id: ID },
      { op: 'get', id: ID, state: 'Provisioning' },
      { op: 'list', count: 1 },
      { op: 'get', id: 'x', errorClass: 'Permanent' },
    ]);
    expect(JSON.stringify(lines)).not.toContain('SENTINEL');
  });
});

describe('list', () => {
  test('gives what carries the mark, in every namespace', async () => {
    await provider.create(request, signal);
    await provider.create({ ...request, namespace: 'other', uid: 'uid-2' }, signal);
    await provider.create({ ...request, name: 'proxy-x', uid: 'uid-3' }, signal);
    kube.pod('proxy-x').metadata.labels = { 'proxy-operator-uid': 'uid-3' };
    const listed = await provider.listByTag(signal);
    expect(listed.map((each) => [each.id, each.uid]).sort()).toEqual([
      [ID, 'uid-1'],
      ['other/proxy-abcdefghijklmnop', 'uid-2'],
    ]);
    expect(listed[0]?.createdAtMs).toBe(Date.UTC(2026, 0, 1));
  });

  test('keeps to the one namespace that the agent may see', async () => {
    provider = createKubernetesProvider(configWith(), { client: kube, namespace: 'crawl' });
    await provider.create(request, signal);
    await provider.create({ ...request, namespace: 'other' }, signal);
    expect((await provider.listByTag(signal)).map((each) => each.id)).toEqual([ID]);
  });
});

describe('check', () => {
  test('reaches the API server and tells its version', async () => {
    expect(await provider.check(signal)).toEqual([
      {
        name: 'apiserver',
        ready: true,
        reason: 'Reachable',
        message: 'pods can be listed',
        details: { version: 'v1.99.0' },
      },
    ]);
  });

  test.each([
    [401, 'Unauthorized', 'Unauthorized'],
    [403, 'Forbidden', 'Forbidden'],
    [500, 'InternalError', 'APIError'],
  ])('of a server that answers %i says %s', async (code, serverReason, reason) => {
    failOnce('GET', 'pods', code, serverReason);
    expect(await provider.check(signal)).toMatchObject([{ ready: false, reason }]);
  });

  test('never fails as a whole, not even when it is aborted', async () => {
    const checked = await provider.check(AbortSignal.abort());
    expect(checked).toMatchObject([{ ready: false, reason: 'Timeout' }]);
  });
});
