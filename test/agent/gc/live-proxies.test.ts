import { expect, test } from 'vitest';
import { createLiveProxies } from '#agent/gc/live-proxies.ts';
import { KubeError } from '#agent/kube/errors.ts';
import { listBody } from '#test/fakes/api-server.ts';
import { type Answer, scripted } from '#test/fakes/kube-client.ts';

const never = new AbortController().signal;

test('every page counts, and so does a Proxy that its schema would refuse', async () => {
  const { client, requests } = scripted(({ query }) =>
    query?.continue === undefined
      ? listBody([{ metadata: { uid: 'a', deletionTimestamp: 'now' } }], '7', 'more')
      : listBody([{ metadata: { uid: 'b' }, spec: 'nonsense' }], '7'),
  );
  expect(await createLiveProxies(client)(never)).toEqual(['a', 'b']);
  expect(requests.map(({ path }) => path)).toEqual(
    Array(2).fill('/apis/crawl.example.com/v1alpha1/proxies'),
  );
  // No resource version: the server asks its store, not a cache that may lag.
  expect(requests[0]?.query).not.toHaveProperty('resourceVersion');
});

test('one namespace is asked for by its path', async () => {
  const { client, requests } = scripted(() => listBody([], '7'));
  expect(await createLiveProxies(client, 'crawl')(never)).toEqual([]);
  expect(requests[0]?.path).toBe('/apis/crawl.example.com/v1alpha1/namespaces/crawl/proxies');
});

test.each<[string, Answer]>([
  [
    'a later page expires',
    ({ query }) => {
      if (query?.continue === undefined) return listBody([{ metadata: { uid: 'a' } }], '7', 'more');
      throw new KubeError({ status: 410, reason: 'Gone' }, 'expired');
    },
  ],
  ['an object has no uid', () => listBody([{ metadata: {} }], '7')],
  ['the answer is no list', () => ({ kind: 'Status' })],
])('there is no list at all when %s', async (_what, answer) => {
  await expect(createLiveProxies(scripted(answer).client)(never)).rejects.toThrow();
});
