import 'reflect-metadata';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import * as x509 from '@peculiar/x509';
import { expect, test } from 'vitest';
import type { TlsMaterial } from '#agent/kube/access.ts';
import { createKubeClient } from '#agent/kube/client.ts';
import { systemClock } from '#shared/clock.ts';

/** A self-signed certificate for 127.0.0.1, which is its own CA. */
async function certificate(name: string): Promise<{ cert: string; key: string }> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true),
      new x509.SubjectAlternativeNameExtension([{ type: 'ip', value: '127.0.0.1' }]),
    ],
  });
  const pkcs8 = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { cert: made.toString('pem'), key: x509.PemConverter.encode(pkcs8, 'PRIVATE KEY') };
}

async function serve(identity: { cert: string; key: string }, port = 0) {
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
  const [before, after] = [await certificate('before'), await certificate('after')];
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
