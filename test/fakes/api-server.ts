/**
 * A scripted HTTP server that stands in for the API server where a fault is the point: what the
 * embedded control plane would never do. Each test says what every list and watch gets.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface FakeRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export type FakeHandler = (request: FakeRequest, response: ServerResponse) => void | Promise<void>;

export interface FakeApiServer {
  readonly url: string;
  /** Every request so far, in order of arrival. */
  readonly requests: FakeRequest[];
  /** Connections that are open now. */
  readonly openConnections: number;
  close(): Promise<void>;
}

export async function startFakeApiServer(handler: FakeHandler): Promise<FakeApiServer> {
  const requests: FakeRequest[] = [];
  let openConnections = 0;
  const server = createServer(async (incoming, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const url = new URL(incoming.url ?? '/', 'http://fake');
    const request = {
      method: incoming.method ?? 'GET',
      path: url.pathname,
      query: url.searchParams,
      headers: incoming.headers,
      body: Buffer.concat(chunks).toString('utf8'),
    };
    requests.push(request);
    await handler(request, response);
  });
  server.on('connection', (socket) => {
    openConnections++;
    socket.on('close', () => openConnections--);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    get openConnections() {
      return openConnections;
    },
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

export function answerJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

/** A `metav1.Status`, as the API server words its refusals. */
export function statusBody(code: number, reason: string, message: string): object {
  return { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, reason, message };
}

export function listBody(
  items: readonly object[],
  resourceVersion: string,
  token?: string,
): object {
  return {
    apiVersion: 'v1',
    kind: 'List',
    metadata: { resourceVersion, ...(token === undefined ? {} : { continue: token }) },
    items,
  };
}

/** One line of a watch. */
export function watchLine(type: string, object: object): string {
  return `${JSON.stringify({ type, object })}\n`;
}
