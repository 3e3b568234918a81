import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  installManifests,
  PROXIES,
  PROXY,
  startTestServer,
  type TestServer,
} from './api-client.ts';

const AGENT = 'system:serviceaccount:crawl-system:egress-agent';
const REVIEWS = '/apis/authorization.k8s.io/v1';

describe('access to the control plane', () => {
  let server: TestServer;
  let agent: string;

  beforeAll(async () => {
    server = await startTestServer();
    await installManifests(server);
    agent = server.controlPlane.agentToken;
  });
  afterAll(async () => await server[Symbol.asyncDispose]());

  it.each([
    ['no token', null],
    ['an unknown token', 'nobody-has-this'],
  ])('is refused with a 401 Status for %s', async (_case, token) => {
    const { status, json, headers } = await server.call('/api/v1/namespaces', { token });
    expect(status).toBe(401);
    expect(json).toMatchObject({ kind: 'Status', reason: 'Unauthorized', code: 401 });
    expect(headers['www-authenticate']).toBe('Bearer');
  });

  it.each(['/healthz', '/livez', '/readyz'])('lets everybody read %s', async (path) => {
    const { status, text } = await server.call(path, { token: null });
    expect([status, text]).toEqual([200, 'ok']);
  });

  it('tells a wrong token even where no token is needed', async () => {
    expect((await server.call('/healthz', { token: 'wrong' })).status).toBe(401);
  });

  it.each([
    {
      path: '/api/v1/namespaces/x/serviceaccounts',
      message:
        `serviceaccounts is forbidden: User "${AGENT}" cannot list resource ` +
        '"serviceaccounts" in API group "" in the namespace "x"',
    },
    {
      path: '/apis/rbac.authorization.k8s.io/v1/clusterroles/r',
      message:
        `clusterroles.rbac.authorization.k8s.io "r" is forbidden: User "${AGENT}" cannot get ` +
        'resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope',
    },
    {
      path: '/api/v1/namespaces/default',
      message:
        `namespaces "default" is forbidden: User "${AGENT}" cannot get resource "namespaces" ` +
        'in API group "" in the namespace "default"',
    },
    {
      path: '/api/v1/namespaces/default/pods/p/log',
      message:
        `pods "p" is forbidden: User "${AGENT}" cannot get resource "pods/log" in API group "" ` +
        'in the namespace "default"',
    },
    { path: '/metrics', message: `forbidden: User "${AGENT}" cannot get path "/metrics"` },
  ])('refuses the agent $path in the words of the real server', async ({ path, message }) => {
    const { status, json } = await server.call(path, { token: agent });
    expect(status).toBe(403);
    expect(json).toMatchObject({ reason: 'Forbidden', message, code: 403 });
  });

  it('lets the agent do what its role says and nothing next to it', async () => {
    await server.call(PROXIES, { method: 'POST', body: PROXY });
    const list = await server.call(PROXIES, { token: agent });
    const patch = { metadata: { annotations: { a: 'b' } } };
    const headers = { 'content-type': 'application/merge-patch+json' };
    const options = { method: 'PATCH', token: agent, headers, body: patch } as const;
    const patched = await server.call(`${PROXIES}/a`, options);
    const deleted = await server.call(`${PROXIES}/a`, { method: 'DELETE', token: agent });
    expect([list.status, patched.status, deleted.status]).toEqual([200, 200, 403]);
  });

  it('follows roles and bindings as they change', async () => {
    const path = '/api/v1/namespaces/kube-public/configmaps';
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public';
    const post = (plural: string, body: object) =>
      server.call(`${rbac}/${plural}`, { method: 'POST', body: { ...body } });
    expect((await server.call(path, { token: agent })).status).toBe(403);
    await post('roles', {
      metadata: { name: 'read' },
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }],
    });
    await post('rolebindings', {
      metadata: { name: 'read' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'read' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'crawl-system', name: 'egress-agent' }],
    });
    expect((await server.call(path, { token: agent })).status).toBe(200);
    await server.call(`${rbac}/rolebindings/read`, { method: 'DELETE' });
    expect((await server.call(path, { token: agent })).status).toBe(403);
  });

  it.each([
    ['list', 'crawl.example.com', 'proxies', true],
    ['delete', 'crawl.example.com', 'proxies', false],
    ['create', 'events.k8s.io', 'events', true],
  ])('answers the question whether the agent can %s %s %s', async (verb, group, resource, may) => {
    const { status, json } = await server.call(`${REVIEWS}/selfsubjectaccessreviews`, {
      method: 'POST',
      token: agent,
      body: { spec: { resourceAttributes: { verb, group, resource, namespace: 'default' } } },
    });
    expect(status).toBe(201);
    expect(json).toMatchObject({ kind: 'SelfSubjectAccessReview', status: { allowed: may } });
  });

  it('lists the rules that hold for the asker', async () => {
    const { json } = await server.call(`${REVIEWS}/selfsubjectrulesreviews`, {
      method: 'POST',
      token: agent,
      body: { spec: { namespace: 'default' } },
    });
    const proxies = { resources: ['proxies'], verbs: ['list', 'watch', 'patch'] };
    expect(json.status).toMatchObject({
      resourceRules: expect.arrayContaining([expect.objectContaining(proxies)]),
      incomplete: false,
    });
  });

  it('says who asks', async () => {
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
    const { json } = await server.call(path, { method: 'POST', token: agent, body: {} });
    expect(json.status).toMatchObject({ userInfo: { username: AGENT } });
  });
});
