import {
  ApiException,
  CoordinationV1Api,
  CoreV1Api,
  CustomObjectsApi,
  KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  Watch,
} from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installManifests, PROXY, startTestServer, type TestServer } from './http/api-client.ts';

const PROXIES = {
  group: 'crawl.example.com',
  version: 'v1alpha1',
  namespace: 'default',
  plural: 'proxies',
};

let server: TestServer;
let config: KubeConfig;

beforeAll(async () => {
  server = await startTestServer();
  await installManifests(server);
  config = new KubeConfig();
  config.loadFromString(server.controlPlane.kubeconfig('admin'));
});
afterAll(() => server[Symbol.asyncDispose]());

/** Status and message of what a call is refused with. */
async function refusal(call: Promise<unknown>): Promise<{ code: number; message: string }> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ApiException)) throw new Error(`not refused: ${String(error)}`);
  return { code: error.code, message: String(JSON.parse(String(error.body)).message) };
}

describe('@kubernetes/client-node', () => {
  it('reads the kubeconfig, certificate authority included', async () => {
    const namespaces = await config.makeApiClient(CoreV1Api).listNamespace();
    expect(namespaces.items.map(({ metadata }) => metadata?.name)).toContain('default');
  });

  it('creates, patches and deletes custom resources, and their status apart', async () => {
    const api = config.makeApiClient(CustomObjectsApi);
    const one = { ...PROXIES, name: 'client' };
    const body = { ...PROXY, metadata: { name: 'client' } };
    await api.createNamespacedCustomObject({ ...PROXIES, body });
    await api.patchNamespacedCustomObjectStatus(
      { ...one, body: { spec: { maxLeases: 99 }, status: { phase: 'Ready' } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    await api.patchNamespacedCustomObject(
      { ...one, body: { spec: { maxLeases: 4 }, status: { phase: 'Failed' } } },
      setHeaderOptions('Content-Type', PatchStrategy.MergePatch),
    );
    expect(await api.getNamespacedCustomObject(one)).toMatchObject({
      metadata: { generation: 2 },
      spec: { maxLeases: 4 },
      status: { phase: 'Ready' },
    });
    await api.deleteNamespacedCustomObject(one);
    expect(await refusal(api.getNamespacedCustomObject(one))).toEqual({
      code: 404,
      message: 'proxies.crawl.example.com "client" not found',
    });
  });

  it('elects a leader: a stale update of the lease loses', async () => {
    const api = config.makeApiClient(CoordinationV1Api);
    const body = {
      metadata: { name: 'leader' },
      spec: { holderIdentity: 'a', leaseDurationSeconds: 15 },
    };
    const lease = await api.createNamespacedLease({ namespace: 'default', body });
    const take = (holderIdentity: string) =>
      api.replaceNamespacedLease({
        namespace: 'default',
        name: 'leader',
        body: { ...lease, spec: { ...lease.spec, holderIdentity } },
      });
    expect((await take('b')).spec?.holderIdentity).toBe('b');
    expect(await refusal(take('c'))).toEqual({
      code: 409,
      message:
        'Operation cannot be fulfilled on leases.coordination.k8s.io "leader": the object has ' +
        'been modified; please apply your changes to the latest version and try again',
    });
  });

  it('watches from a list without a gap', async () => {
    const api = config.makeApiClient(CoreV1Api);
    const list = await api.listNamespacedSecret({ namespace: 'default' });
    const create = (name: string) =>
      api.createNamespacedSecret({
        namespace: 'default',
        body: { metadata: { name }, stringData: { password: 'hidden' } },
      });
    await create('between');
    const seen: string[] = [];
    const both = Promise.withResolvers<void>();
    const controller = await new Watch(config).watch(
      '/api/v1/namespaces/default/secrets',
      { resourceVersion: list.metadata?.resourceVersion, allowWatchBookmarks: true },
      (phase, secret) => {
        seen.push(`${phase} ${secret.metadata.name}`);
        if (seen.length === 2) both.resolve();
      },
      () => undefined,
    );
    await create('after');
    await both.promise;
    controller.abort();
    expect(seen).toEqual(['ADDED between', 'ADDED after']);
    const { data } = await api.readNamespacedSecret({ namespace: 'default', name: 'after' });
    expect(Buffer.from(data?.['password'] ?? '', 'base64').toString()).toBe('hidden');
  });

  it('is held to the role of the agent with the token of the agent', async () => {
    const agent = new KubeConfig();
    agent.loadFromString(server.controlPlane.kubeconfig('agent'));
    const { items } = await agent
      .makeApiClient(CustomObjectsApi)
      .listNamespacedCustomObject(PROXIES);
    expect(items).toBeInstanceOf(Array);
    const { code } = await refusal(
      agent.makeApiClient(CoreV1Api).deleteNamespace({ name: 'default' }),
    );
    expect(code).toBe(403);
  });
});
