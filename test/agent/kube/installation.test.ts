import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createKubeClient, type KubeClient } from '#agent/kube/client.ts';
import { readInstallation } from '#agent/kube/installation.ts';
import {
  answerJson,
  type FakeApiServer,
  type FakeHandler,
  startFakeApiServer,
  statusBody,
} from '#test/fakes/api-server.ts';
import { FakeClock } from '#test/fakes/clock.ts';

const PATH = '/api/v1/namespaces/home/configmaps';
let handler: FakeHandler;
let api: FakeApiServer;
let client: KubeClient;
const clock = new FakeClock();

beforeEach(async () => {
  api = await startFakeApiServer((request, response) => handler(request, response));
  const access = {
    server: api.url,
    credentials: async () => ({ headers: {}, tls: {} }),
    refresh() {},
  };
  client = createKubeClient({ access, clock, userAgent: 'test' });
});

afterEach(async () => {
  await client.close();
  await api.close();
});

const onWait = vi.fn();

function read(signal = new AbortController().signal): Promise<string> {
  const newId = () => 'made-here';
  const deps = { client, namespace: 'home', newId, clock, random: () => 1, onWait };
  return readInstallation(deps, signal);
}

const notFound = statusBody(404, 'NotFound', 'configmaps "egress-agent-installation" not found');

test('the first start of all makes an id, and every later one finds it', async () => {
  let stored: object | undefined;
  handler = ({ method, body }, response) => {
    if (method === 'POST') stored = JSON.parse(body);
    answerJson(response, stored === undefined ? 404 : 200, stored ?? notFound);
  };
  expect(await read()).toBe('made-here');
  expect(stored).toMatchObject({
    metadata: { namespace: 'home', name: 'egress-agent-installation' },
    immutable: true,
    data: { id: 'made-here' },
  });
  expect(await read()).toBe('made-here');
  expect(api.requests.map(({ method }) => method)).toEqual(['GET', 'POST', 'GET']);
});

test('of two replicas that start together both take the id of the faster one', async () => {
  let gets = 0;
  handler = ({ method, path }, response) => {
    if (method === 'POST') {
      expect(path).toBe(PATH);
      answerJson(response, 409, statusBody(409, 'AlreadyExists', 'already exists'));
    } else if (++gets === 1) answerJson(response, 404, notFound);
    else answerJson(response, 200, { data: { id: 'of-the-other' } });
  };
  expect(await read()).toBe('of-the-other');
});

test('an API server that is away is waited for, and that is told once', async () => {
  let requests = 0;
  handler = (_, response) => {
    if (++requests < 4) answerJson(response, 503, statusBody(503, 'ServiceUnavailable', 'no'));
    else answerJson(response, 200, { data: { id: 'here' } });
  };
  const id = read();
  await vi.waitFor(async () => {
    await clock.advance(20_000);
    expect(requests).toBe(4);
  });
  expect(await id).toBe('here');
  expect(onWait).toHaveBeenCalledTimes(1);
});

test.each([
  [{}, 'data.id must be'],
  [{ data: { id: 'not a label value' } }, 'data.id must be'],
])('a ConfigMap without a usable id (%j) is an error that names it', async (configMap, message) => {
  handler = (_, response) => answerJson(response, 200, configMap);
  await expect(read()).rejects.toThrow(message);
  await expect(read()).rejects.toThrow('home/egress-agent-installation');
});

test('a refusal is an error, not a reason to wait', async () => {
  handler = (_, response) => answerJson(response, 403, statusBody(403, 'Forbidden', 'no right'));
  await expect(read()).rejects.toThrow('no right');
});
