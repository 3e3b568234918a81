import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { installManifests, PROXIES, startTestServer, type TestServer } from './api-client.ts';

const AGENT = 'system:serviceaccount:crawl-system:egress-agent';
const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
const WHO = '/apis/authentication.k8s.io/v1/selfsubjectreviews';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  await installManifests(server);
});
afterAll(() => server[Symbol.asyncDispose]());

const as = (user: string, group?: string) => ({
  'impersonate-user': user,
  ...(group !== undefined && { 'impersonate-group': group }),
});

describe('a caller who acts as another', () => {
  it('may do what the other may, and no more', async () => {
    const listed = await server.call(PROXIES, { headers: as(AGENT) });
    expect(listed.status).toBe(200);
    const refused = await server.call('/api/v1/namespaces/x', {
      method: 'DELETE',
      headers: as(AGENT),
    });
    expect(refused.status).toBe(403);
    expect(refused.json.message).toContain(`User "${AGENT}" cannot delete resource "namespaces"`);
  });

  it('is told what the other may do', async () => {
    const review = async (verb: string) => {
      const spec = { resourceAttributes: { verb, resource: 'pods', namespace: 'elsewhere' } };
      const body = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview', spec };
      return (await server.call(REVIEWS, { method: 'POST', body, headers: as('jane') })).json;
    };
    expect((await review('delete')).status).toMatchObject({ allowed: false });
  });

  it('is in the groups that it names, and authenticated', async () => {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
    const headers = as('jane', 'system:masters');
    const { json } = await server.call(WHO, { method: 'POST', body, headers });
    expect(json.status).toEqual({
      userInfo: { username: 'jane', groups: ['system:masters', 'system:authenticated'] },
    });
  });

  it('must be allowed to', async () => {
    const { agentToken: token } = server.controlPlane;
    const { status, json } = await server.call(PROXIES, { token, headers: as('jane') });
    expect(status).toBe(403);
    expect(json.message).toBe(
      `users "jane" is forbidden: User "${AGENT}" cannot impersonate resource "users" ` +
        'in API group "" at the cluster scope',
    );
  });

  it('cannot name a group alone', async () => {
    const headers = { 'impersonate-group': 'system:masters' };
    const { status, json } = await server.call(PROXIES, { headers });
    expect(status).toBe(400);
    expect(json.message).toContain('impersonate-user');
  });

  it('needs a token of its own', async () => {
    const { status } = await server.call(PROXIES, { token: 'wrong', headers: as('jane') });
    expect(status).toBe(401);
  });
});
