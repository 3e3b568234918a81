import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nameOf, objectAt } from '#deploy/local/control-plane/api/object-meta.ts';
import { type JsonObject, objects } from '#deploy/local/control-plane/json.ts';
import { installManifests, startTestServer, type TestServer } from './api-client.ts';

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const OPENAPI_V2 = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';

describe('discovery', () => {
  let server: TestServer;
  let get: (path: string, accept?: string) => ReturnType<TestServer['call']>;

  beforeAll(async () => {
    server = await startTestServer();
    await installManifests(server);
    // What every authenticated user may read.
    const token = server.controlPlane.agentToken;
    get = (path, accept = 'application/json') => server.call(path, { token, headers: { accept } });
  });
  afterAll(async () => await server[Symbol.asyncDispose]());

  it('tells a version of the API that clients understand', async () => {
    const { json } = await get('/version');
    expect(json).toMatchObject({
      major: '1',
      minor: '32',
      gitVersion: expect.stringMatching(/^v1/),
    });
  });

  it('lists the groups with those that CRDs define', async () => {
    const { json } = await get('/apis');
    const group = objects(json.groups).find(({ name }) => name === 'crawl.example.com');
    const version = { groupVersion: 'crawl.example.com/v1alpha1', version: 'v1alpha1' };
    expect(group).toMatchObject({ versions: [version], preferredVersion: version });
    expect((await get('/apis/crawl.example.com')).json).toMatchObject({ kind: 'APIGroup' });
    expect((await get('/api')).json).toMatchObject({ kind: 'APIVersions', versions: ['v1'] });
  });

  it('lists resources with their names, verbs and subresources', async () => {
    const { json } = await get('/apis/crawl.example.com/v1alpha1');
    const resources = objects(json.resources);
    expect(resources.find(({ name }) => name === 'proxies')).toMatchObject({
      singularName: 'proxy',
      kind: 'Proxy',
      namespaced: true,
      shortNames: ['px'],
      verbs: expect.arrayContaining(['deletecollection', 'list', 'watch']),
    });
    expect(resources.find(({ name }) => name === 'proxies/status')).toMatchObject({
      kind: 'Proxy',
      verbs: ['get', 'patch', 'update'],
    });
  });

  it('offers logs of pods, and questions that are only created', async () => {
    const core = await get('/api/v1');
    expect(objects(core.json.resources).map(({ name }) => name)).toContain('pods/log');
    const reviews = objects((await get('/apis/authorization.k8s.io/v1')).json.resources);
    expect(reviews.every(({ verbs }) => String(verbs) === 'create')).toBe(true);
  });

  it('sends everything in one document to clients that know it', async () => {
    const { json, headers } = await get('/apis', `${AGGREGATED},application/json`);
    expect(headers['content-type']).toBe(AGGREGATED);
    const group = objects(json.items).find((item) => nameOf(item) === 'crawl.example.com');
    const [version] = objects(group?.versions);
    const proxies = objects(version?.resources).find(({ resource }) => resource === 'proxies');
    expect(proxies).toMatchObject({
      scope: 'Namespaced',
      responseKind: { group: 'crawl.example.com', version: 'v1alpha1', kind: 'Proxy' },
      subresources: [{ subresource: 'status' }],
    });
    const core = await get('/api', AGGREGATED);
    expect(objects(core.json.items)).toHaveLength(1);
  });

  it('keeps to the old form for clients that prefer it', async () => {
    const { json } = await get('/apis', `application/json,${AGGREGATED};q=0.5`);
    expect(json.kind).toBe('APIGroupList');
  });

  it('describes resources in OpenAPI v3, one document for each group version', async () => {
    const index = objectAt((await get('/openapi/v3')).json, 'paths');
    const entry = objectAt(index, 'apis/crawl.example.com/v1alpha1');
    const { json } = await get(String(entry.serverRelativeURL));
    const schemas = objectAt(objectAt(json, 'components'), 'schemas');
    expect(Object.keys(schemas)).toContain('com.example.crawl.v1alpha1.Proxy');
    expect((await get('/openapi/v3/apis/none.example.com/v1')).status).toBe(404);
  });

  it('describes resources in OpenAPI v2, as JSON and as protobuf', async () => {
    const { json, headers } = await get('/openapi/v2');
    expect(Object.keys(objectAt(json, 'definitions'))).toContain(
      'com.example.crawl.v1alpha1.Proxy',
    );
    const etag = String(headers.etag);
    const protobuf = await get('/openapi/v2', OPENAPI_V2);
    expect(protobuf.headers['content-type']).toBe(OPENAPI_V2.replace('@', '.'));
    const token = server.controlPlane.agentToken;
    const again = await server.call('/openapi/v2', { token, headers: { 'if-none-match': etag } });
    expect(again.status).toBe(304);
  });

  it('forgets what is no longer defined', async () => {
    const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    await server.call(`${crds}/providerhealths.crawl.example.com`, { method: 'DELETE' });
    const { json } = await get('/apis/crawl.example.com/v1alpha1');
    const names = objects(json.resources).map(({ name }: JsonObject) => name);
    expect(names).not.toContain('providerhealths');
    const document = (await get('/openapi/v2')).text;
    expect(document).not.toContain('ProviderHealth');
  });
});
