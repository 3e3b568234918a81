import { expect, it } from 'vitest';
import { startTestServer } from './api-client.ts';

it('tells one line for each request, without query and token', async () => {
  const lines: string[] = [];
  await using server = await startTestServer({ log: (line) => lines.push(line) });
  await server.call('/api/v1/namespaces?labelSelector=a%3Dprivate');
  await server.call('/api/v1/namespaces', { token: 'nobody-has-this' });
  expect(lines).toEqual([
    'GET /api/v1/namespaces 200 0 ms kubernetes-admin',
    'GET /api/v1/namespaces 401 0 ms system:anonymous',
  ]);
});
