import { describe, expect, test, vi } from 'vitest';
import { KubeError } from '#agent/kube/errors.ts';
import { createEventRecorder, type ProxyEvent } from '#agent/kube/events.ts';
import { createProxyClient, parseProxy } from '#agent/kube/proxies.ts';
import { createSecretStore, parseSecret } from '#agent/kube/secrets.ts';
import { API_VERSION, FINALIZER, SPEC_HASH_ANNOTATION } from '#shared/crd/names.ts';
import type { ProxyStatus } from '#shared/crd/proxy.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';
import { type Answer, scripted } from '#test/fakes/kube-client.ts';

const never = new AbortController().signal;
const refuse = (status: number, reason: 'NotFound' | 'Forbidden' | 'ServerError') => {
  throw new KubeError({ status, reason }, `refused: ${reason}`);
};

function proxyJson(metadata: object = {}, status: ProxyStatus = {}) {
  return {
    apiVersion: API_VERSION,
    kind: 'Proxy',
    metadata: {
      namespace: 'crawl',
      name: 'p1',
      uid: 'u1',
      resourceVersion: '7',
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers: ['example.com/other'],
      annotations: { kept: 'yes' },
      ...metadata,
    },
    spec: { mode: 'External', endpoint: { host: 'h', port: 1 } },
    status,
  };
}

describe('writes on proxies', () => {
  function setUp(status: ProxyStatus = {}, metadata: object = {}) {
    const { client, requests } = scripted(() => proxyJson({ resourceVersion: '8' }));
    const observe = vi.fn();
    return {
      requests,
      observe,
      writer: createProxyClient({ client, observe }),
      proxy: parseProxy(proxyJson(metadata, status)),
    };
  }

  test('each one names the version and the uid that it was decided on', async () => {
    const { writer, proxy, requests, observe } = setUp();
    const fresh = await writer.addFinalizer(proxy, never);
    expect(requests).toEqual([
      {
        method: 'PATCH',
        path: '/apis/crawl.example.com/v1alpha1/namespaces/crawl/proxies/p1',
        contentType: 'application/merge-patch+json',
        body: {
          metadata: {
            uid: 'u1',
            resourceVersion: '7',
            finalizers: ['example.com/other', FINALIZER],
          },
        },
      },
    ]);
    expect(fresh.metadata.resourceVersion).toBe('8');
    expect(observe).toHaveBeenCalledWith(fresh);
  });

  test('removing the finalizer leaves those of others', async () => {
    const { writer, proxy, requests } = setUp({}, { finalizers: [FINALIZER, 'example.com/other'] });
    await writer.removeFinalizer(proxy, never);
    expect(requests[0]?.body).toMatchObject({ metadata: { finalizers: ['example.com/other'] } });
  });

  test('an annotation is set or removed beside the others', async () => {
    const { writer, proxy, requests } = setUp();
    await writer.setAnnotation(proxy, SPEC_HASH_ANNOTATION, 'abc', never);
    await writer.setAnnotation(proxy, 'kept', undefined, never);
    expect(requests.map((request) => request.body)).toMatchObject([
      { metadata: { annotations: { [SPEC_HASH_ANNOTATION]: 'abc' } } },
      { metadata: { annotations: { kept: null } } },
    ]);
  });

  test('what is true already is not written', async () => {
    const { writer, proxy, requests } = setUp({}, { finalizers: [FINALIZER] });
    await writer.addFinalizer(proxy, never);
    await writer.setAnnotation(proxy, 'kept', 'yes', never);
    await writer.setAnnotation(proxy, 'absent', undefined, never);
    const released = parseProxy(proxyJson({ finalizers: [] }));
    await writer.removeFinalizer(released, never);
    expect(requests).toEqual([]);
  });

  test('the status becomes exactly what is given: fields that it lacks are removed', async () => {
    const { writer, proxy, requests } = setUp({
      phase: 'Ready',
      providerID: 'pod/x',
      ip: '10.0.0.1',
    });
    await writer.patchStatus(proxy, { phase: 'Replacing', observedGeneration: 2 }, never);
    expect(requests[0]).toMatchObject({
      path: '/apis/crawl.example.com/v1alpha1/namespaces/crawl/proxies/p1/status',
      body: {
        metadata: { uid: 'u1', resourceVersion: '7' },
        status: { phase: 'Replacing', observedGeneration: 2, providerID: null, ip: null },
      },
    });
  });

  test('a refusal reaches the caller and the cache learns nothing', async () => {
    const { client } = scripted(() => refuse(403, 'Forbidden'));
    const observe = vi.fn();
    const writer = createProxyClient({ client, observe });
    const proxy = parseProxy(proxyJson());
    await expect(writer.addFinalizer(proxy, never)).rejects.toMatchObject({ reason: 'Forbidden' });
    expect(observe).not.toHaveBeenCalled();
  });
});

describe('secret store', () => {
  const secretJson = (resourceVersion: string, password: string) => ({
    metadata: {
      namespace: 'crawl',
      name: 's',
      uid: 'u',
      resourceVersion,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    data: { password: Buffer.from(password).toString('base64') },
  });

  test('values are decoded, and a Secret without data is one', () => {
    expect(parseSecret(secretJson('1', 'pässword')).data).toEqual({ password: 'pässword' });
    expect(parseSecret({ ...secretJson('1', ''), data: null }).data).toEqual({});
  });

  test('a Secret is read once a minute, and listeners hear of a changed one', async () => {
    let version = 1;
    const { client, requests } = scripted(() => secretJson(`${version}`, `p${version}`));
    const clock = new FakeClock();
    const store = createSecretStore({ client, clock });
    const heard: string[] = [];
    store.subscribe((namespace, name) => heard.push(`${namespace}/${name} ${version}`));
    expect(store.peek('crawl', 's')).toBeUndefined();
    await store.get('crawl', 's', never);
    version = 2;
    await clock.advance(59_999);
    expect((await store.get('crawl', 's', never))?.data.password).toBe('p1');
    await clock.advance(1);
    expect((await store.get('crawl', 's', never))?.data.password).toBe('p2');
    expect(store.peek('crawl', 's')?.data.password).toBe('p2');
    await clock.advance(60_000);
    await store.get('crawl', 's', never);
    expect(requests).toHaveLength(3);
    expect(heard).toEqual(['crawl/s 1', 'crawl/s 2']);
  });

  test('a missing Secret is a value and looked for again soon', async () => {
    let exists = false;
    const { client } = scripted(() => (exists ? secretJson('1', 'p') : refuse(404, 'NotFound')));
    const clock = new FakeClock();
    const store = createSecretStore({ client, clock });
    expect(await store.get('crawl', 's', never)).toBeUndefined();
    exists = true;
    await clock.advance(5_000);
    expect((await store.get('crawl', 's', never))?.data.password).toBe('p');
  });

  test('a failure is thrown and what was known stays readable', async () => {
    let failing = false;
    const { client } = scripted(() =>
      failing ? refuse(500, 'ServerError') : secretJson('1', 'p'),
    );
    const clock = new FakeClock();
    const store = createSecretStore({ client, clock });
    await store.get('crawl', 's', never);
    failing = true;
    await clock.advance(60_000);
    await expect(store.get('crawl', 's', never)).rejects.toMatchObject({ reason: 'ServerError' });
    expect(store.peek('crawl', 's')?.data.password).toBe('p');
  });
});

describe('event recorder', () => {
  const event = (reason: string, note = 'note'): ProxyEvent => ({
    regarding: {
      apiVersion: API_VERSION,
      kind: 'Proxy',
      namespace: 'crawl',
      name: 'p1',
      uid: 'u1',
    },
    type: 'Normal',
    reason,
    action: 'CreateInstance',
    note,
  });

  function setUp(answer: Answer = () => ({})) {
    const { client, requests } = scripted(answer);
    const clock = new FakeClock();
    const observer = { eventDropped: vi.fn() };
    const deps = { client, clock, random: () => 0.5, instance: 'agent-0', observer };
    const recorder = createEventRecorder(deps);
    const stop = new AbortController();
    const done = recorder.run(stop.signal);
    return { requests, clock, observer, recorder, stop, done };
  }

  test('an event is written as events.k8s.io/v1 in the namespace of its object', async () => {
    const { recorder, requests } = setUp();
    recorder.record(event('Created', 'ü'.repeat(1_000)));
    await settle();
    expect(requests[0]).toMatchObject({
      method: 'POST',
      path: '/apis/events.k8s.io/v1/namespaces/crawl/events',
      body: {
        eventTime: '2026-01-01T00:00:00.000000Z',
        reportingController: 'crawl.example.com/egress-agent',
        reportingInstance: 'agent-0',
        regarding: { kind: 'Proxy', name: 'p1', uid: 'u1' },
        type: 'Normal',
        reason: 'Created',
        action: 'CreateInstance',
        note: 'ü'.repeat(512),
      },
    });
  });

  test('equal events are counted on the one that exists, others get their own', async () => {
    const { recorder, requests, clock } = setUp();
    recorder.record(event('QuotaExceeded'));
    await settle();
    await clock.advance(5_000);
    recorder.record(event('QuotaExceeded'));
    recorder.record(event('Created'));
    await settle();
    const [created, counted, other] = requests;
    expect([created?.method, counted?.method, other?.method]).toEqual(['POST', 'PATCH', 'POST']);
    const name = (created?.body as { metadata: { name: string } } | undefined)?.metadata.name;
    expect(counted?.path).toBe(`/apis/events.k8s.io/v1/namespaces/crawl/events/${name}`);
    expect(counted?.body).toEqual({
      series: { count: 2, lastObservedTime: '2026-01-01T00:00:05.000000Z' },
    });
    await clock.advance(6 * 60_000);
    recorder.record(event('QuotaExceeded'));
    await settle();
    expect(requests.at(-1)?.method).toBe('POST');
  });

  test('a counted event that the server has forgotten is written anew', async () => {
    const { recorder, requests } = setUp((request) =>
      request.method === 'PATCH' ? refuse(404, 'NotFound') : {},
    );
    recorder.record(event('A'));
    await settle();
    recorder.record(event('A'));
    await settle();
    expect(requests.map((request) => request.method)).toEqual(['POST', 'PATCH', 'POST']);
    expect(requests[2]?.body).toMatchObject({ series: { count: 2 } });
  });

  test('a server that is away is asked again a few times, a refusal is final', async () => {
    let reason: 'ServerError' | 'Forbidden' = 'ServerError';
    const { recorder, requests, clock, observer } = setUp(() => refuse(500, reason));
    recorder.record(event('A'));
    await clock.advance(60_000);
    expect(requests).toHaveLength(4);
    reason = 'Forbidden';
    recorder.record(event('B'));
    await clock.advance(60_000);
    expect(requests).toHaveLength(5);
    expect(observer.eventDropped.mock.calls.map(([why]) => why)).toEqual(['refused', 'refused']);
  });

  test('a burst beyond the queue is dropped and told, and nobody waits', () => {
    const { client } = scripted(() => ({}));
    const observer = { eventDropped: vi.fn() };
    const recorder = createEventRecorder({
      ...{ client, clock: new FakeClock(), random: () => 0.5, instance: 'a', observer },
    });
    for (let nth = 0; nth < 600; nth++) recorder.record(event('A', `${nth}`));
    expect(observer.eventDropped).toHaveBeenCalledTimes(600 - 512);
    expect(observer.eventDropped).toHaveBeenLastCalledWith('queue-full');
  });

  test('stopping ends it, also between two tries', async () => {
    const { recorder, stop, done, clock } = setUp(() => refuse(500, 'ServerError'));
    recorder.record(event('A'));
    await settle();
    expect(clock.pendingTimers).toBe(1);
    stop.abort();
    await done;
    expect(clock.pendingTimers).toBe(0);
  });
});
