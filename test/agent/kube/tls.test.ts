import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import type { TlsMaterial } from '#agent/kube/access.ts';
import { createKubeClient } from '#agent/kube/client.ts';
import { systemClock } from '#shared/clock.ts';
import { type Certificate, makeCertificate } from '#test/fakes/proxies.ts';

async function serve(identity: Certificate, port = 0) {
  let handshakes = 0;
  const server: Server = createServer(identity, (_request, response) => response.end('{}'));
  server.on('secureConnection', () => handshakes++);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    handshakes: () => handshakes,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

test('requests share TLS connections, and a rotated CA is taken over without a restart', async () => {
  const before = await makeCertificate('ip', '127.0.0.1');
  const after = await makeCertificate('ip', '127.0.0.1');
  const first = await serve(before);
  let tls: TlsMaterial = { ca: before.cert };
  const client = createKubeClient({
    access: {
      server: `https://127.0.0.1:${first.port}`,
      credentials: async () => ({ headers: {}, tls }),
      refresh: () => {},
    },
    clock: systemClock,
    userAgent: 'test',
  });
  const get = () => client.request({ path: '/version' });
  for (let nth = 0; nth < 50; nth++) await get();
  expect(first.handshakes()).toBeLessThanOrEqual(2);

  await first.close();
  const second = await serve(after, first.port);
  await expect(get()).rejects.toMatchObject({ status: 0, reason: 'Unreachable' });
  tls = { ca: after.cert };
  for (let nth = 0; nth < 50; nth++) await get();
  expect(second.handshakes()).toBeLessThanOrEqual(2);

  tls = { ca: before.cert };
  await expect(get()).rejects.toMatchObject({ reason: 'Unreachable' });
  await client.close();
  await second.close();
});
