/** A client of the API server whose every request is answered by a test. */
import type { KubeClient, KubeRequest } from '#agent/kube/client.ts';

/** What a request gets; throws what the server would refuse with. */
export type Answer = (request: KubeRequest) => unknown;

/** The client, and every request that it was given. */
export function scripted(answer: Answer) {
  const requests: KubeRequest[] = [];
  const client: KubeClient = {
    server: 'https://fake',
    async request(request) {
      requests.push(request);
      return answer(request);
    },
    stream: () => Promise.reject(new Error('not used')),
    close: () => Promise.resolve(),
  };
  return { client, requests };
}
