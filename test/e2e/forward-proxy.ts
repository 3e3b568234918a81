/** A plain HTTP forward proxy in the test's own process, to stand for many External proxies. */
import { createServer, request } from 'node:http';

export interface ForwardProxy {
  readonly port: number;
  /** Requests that went through so far. */
  readonly count: number;
  close(): Promise<void>;
}

export async function startForwardProxy(host = '127.0.0.1'): Promise<ForwardProxy> {
  let count = 0;
  const server = createServer((incoming, outgoing) => {
    count++;
    const target = URL.parse(incoming.url ?? '');
    if (target === null) {
      outgoing.writeHead(400).end();
      return;
    }
    const { method, headers } = incoming;
    const forwarded = request(target, { method, headers, localAddress: host }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.once('error', () => outgoing.writeHead(502).end());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    get count() {
      return count;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
