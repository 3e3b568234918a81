import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { objectAt } from '#deploy/local/control-plane/api/object-meta.ts';
import { BODY_BYTES_MAX } from '#deploy/local/control-plane/http/body.ts';
import { objects } from '#deploy/local/control-plane/json.ts';
import {
  installManifests,
  PROXIES,
  PROXY,
  startTestServer,
  type TestServer,
} from './api-client.ts';

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
const MERGE = { 'content-type': 'application/merge-patch+json' };
const CONFIG_MAPS = '/api/v1/namespaces/default/configmaps';

describe('requests to the control plane', () => {
  let server: TestServer;

  beforeAll(async () => {
    server = await startTestServer();
    await installManifests(server);
    await server.call(PROXIES, { method: 'POST', body: PROXY });
  });
  afterAll(async () => await server[Symbol.asyncDispose]());

  it('sends tables to those who ask for them', async () => {
    const headers = { accept: TABLE };
    const { json } = await server.call(PROXIES, { headers });
    expect(json).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
    expect(objects(json.columnDefinitions).map(({ name }) => name)).toContain('Phase');
    expect(objects(json.rows)).toMatchObject([
      { cells: expect.arrayContaining(['a']), object: { kind: 'PartialObjectMetadata' } },
    ]);
    const whole = await server.call(`${PROXIES}/a?includeObject=Object`, { headers });
    expect(objects(whole.json.rows)).toMatchObject([{ object: { kind: 'Proxy' } }]);
  });

  it('sends metadata alone to those who ask for it', async () => {
    const accept = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io';
    const { json } = await server.call(PROXIES, { headers: { accept } });
    expect(json).toMatchObject({ kind: 'PartialObjectMetadataList' });
    expect(objects(json.items)[0]).not.toHaveProperty('spec');
  });

  it('sends a Status as it is, also where tables are asked for', async () => {
    const { json } = await server.call(`${PROXIES}/none`, { headers: { accept: TABLE } });
    expect(json).toMatchObject({ kind: 'Status', reason: 'NotFound' });
  });

  it('sends YAML', async () => {
    const { text, headers } = await server.call(`${PROXIES}/a`, {
      headers: { accept: 'application/yaml' },
    });
    expect(headers['content-type']).toBe('application/yaml');
    expect(text).toContain('kind: Proxy\n');
  });

  it.each([
    ['application/vnd.kubernetes.protobuf', 406],
    ['text/html', 406],
    ['application/vnd.kubernetes.protobuf,application/json', 200],
    ['application/json;q=0', 406],
    ['*/*', 200],
  ])('answers Accept %s with %i', async (accept, status) => {
    expect((await server.call(PROXIES, { headers: { accept } })).status).toBe(status);
  });

  it.each([
    ['POST', PROXIES, 'text/plain', 415],
    ['POST', PROXIES, 'application/cbor', 415],
    ['PATCH', `${PROXIES}/a`, 'application/json', 415],
    ['PATCH', `${PROXIES}/a`, 'application/merge-patch+json', 400],
    ['POST', PROXIES, 'application/json', 400],
    ['POST', PROXIES, 'application/yaml', 400],
    ['POST', PROXIES, 'application/vnd.kubernetes.protobuf', 400],
  ] as const)('refuses %s %s with a senseless body as %s: %i', async (method, path, type, code) => {
    const headers = { 'content-type': type };
    const { status, json } = await server.call(path, { method, headers, body: '{"a": [' });
    expect(status).toBe(code);
    expect(json).toMatchObject({ kind: 'Status', code });
  });

  it('refuses strategic merge patches of custom resources', async () => {
    const { status } = await server.call(`${PROXIES}/a`, {
      method: 'PATCH',
      headers: { 'content-type': 'application/strategic-merge-patch+json' },
      body: { metadata: { labels: { a: 'b' } } },
    });
    expect(status).toBe(415);
  });

  it('takes YAML bodies', async () => {
    const { status } = await server.call(CONFIG_MAPS, {
      method: 'POST',
      headers: { 'content-type': 'application/yaml' },
      body: 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: from-yaml}\ndata: {a: b}\n',
    });
    expect(status).toBe(201);
  });

  it('takes a body of the greatest size and refuses one byte more', async () => {
    const object = JSON.stringify({ metadata: { name: 'big' }, data: { a: 'b' } });
    const body = (bytes: number) => object.padEnd(bytes);
    const post = (bytes: number) => server.call(CONFIG_MAPS, { method: 'POST', body: body(bytes) });
    expect((await post(BODY_BYTES_MAX)).status).toBe(201);
    expect((await post(BODY_BYTES_MAX + 1)).status).toBe(413);
  });

  it.each([
    ['Strict', 400],
    ['Warn', 200],
    ['Ignore', 200],
  ])('treats unknown fields as fieldValidation=%s says', async (fieldValidation, status) => {
    const answer = await server.call(`${PROXIES}/a?fieldValidation=${fieldValidation}`, {
      method: 'PUT',
      body: { ...PROXY, metadata: await currentMetadata(server), spec: { ...spec(), wrong: 1 } },
    });
    expect(answer.status).toBe(status);
    const warning = '299 - "unknown field \\"spec.wrong\\""';
    expect(answer.headers.warning).toBe(fieldValidation === 'Warn' ? warning : undefined);
  });

  it('names the fields of an invalid object', async () => {
    const endpoint = { host: '127.0.0.1', port: 0 };
    const body = { ...PROXY, metadata: { name: 'b' }, spec: { mode: 'External', endpoint } };
    const { status, json } = await server.call(PROXIES, { method: 'POST', body });
    expect(status).toBe(422);
    expect(objectAt(json, 'details')).toMatchObject({
      causes: [{ field: 'spec.endpoint.port' }],
    });
  });

  it('owns writes without a manager by the program that made them', async () => {
    const headers = { ...MERGE, 'user-agent': 'inspector/2.1 (linux)' };
    const body = { metadata: { labels: { seen: 'yes' } } };
    const { json } = await server.call(`${PROXIES}/a`, { method: 'PATCH', headers, body });
    const managers = objects(objectAt(json, 'metadata').managedFields);
    expect(managers.map(({ manager }) => manager)).toContain('inspector');
  });

  it.each([
    ['limit=many', 'limit'],
    ['dryRun=Some', 'dryRun'],
    ['fieldValidation=Maybe', 'fieldValidation'],
    ['gracePeriodSeconds=-1', 'gracePeriodSeconds'],
    ['propagationPolicy=Later', 'propagationPolicy'],
  ])('refuses ?%s and names the parameter', async (query, name) => {
    const isDelete = /grace|propagation/.test(query);
    const isWrite = /dryRun|field/.test(query);
    const { status, json } = await server.call(`${PROXIES}${isDelete ? '/a' : ''}?${query}`, {
      method: isDelete ? 'DELETE' : isWrite ? 'POST' : 'GET',
      ...(isWrite && { body: PROXY }),
    });
    expect(status).toBe(400);
    expect(json.message).toContain(name);
  });

  it('deletes by the options in the body', async () => {
    const call = (preconditions: { uid: string }) =>
      server.call(`${CONFIG_MAPS}/from-yaml`, { method: 'DELETE', body: { preconditions } });
    expect((await call({ uid: 'another' })).status).toBe(409);
    const live = await server.call(`${CONFIG_MAPS}/from-yaml`);
    const { status, json } = await call({ uid: String(objectAt(live.json, 'metadata').uid) });
    expect([status, json.status]).toEqual([200, 'Success']);
  });

  it.each([
    ['GET', '/apis/crawl.example.com/v1alpha1/proxies/a', 404],
    ['GET', '/apis/crawl.example.com/v1/namespaces/default/proxies', 404],
    ['GET', '/apis/crawl.example.com/v1alpha1/namespaces/default/providerhealths', 404],
    ['GET', `${PROXIES}/a/scale`, 404],
    ['GET', `${PROXIES}/a/status`, 200],
    ['POST', `${PROXIES}/a`, 405],
    ['POST', '/apis/crawl.example.com/v1alpha1/proxies', 405],
    ['DELETE', '/api/v1/pods', 405],
    ['DELETE', `${PROXIES}/a/status`, 405],
    ['GET', '/api/v1/namespaces/%zz', 400],
    ['OPTIONS', PROXIES, 405],
    ['POST', '/version', 405],
    ['GET', '/nothing', 404],
  ] as const)('answers %s %s with %i', async (method, path, status) => {
    const body = method === 'POST' ? { body: PROXY } : {};
    expect((await server.call(path, { method, ...body })).status).toBe(status);
  });
});

function spec() {
  return { mode: 'External', endpoint: { host: '127.0.0.1', port: 3128 } };
}

async function currentMetadata({ call }: TestServer) {
  return objectAt((await call(`${PROXIES}/a`)).json, 'metadata');
}
