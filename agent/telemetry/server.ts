/** `/metrics`, `/healthz` and `/readyz` of the agent. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface TelemetryServerDeps {
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> };
  /** What keeps the agent from being ready; empty when it is. */
  readonly notReady: () => readonly string[];
}

export interface TelemetryServer {
  /** Base URL with the port that was bound. */
  readonly url: string;
  close(): Promise<void>;
}

export interface BindAddress {
  /** Undefined binds every address. */
  readonly host: string | undefined;
  readonly port: number;
}

const REQUEST_TIMEOUT_MS = 10_000;
const CONNECTIONS_MAX = 128;

/** Binds at once; rejects with the address and the reason when that cannot be done. */
export async function startTelemetryServer(
  bind: BindAddress,
  deps: TelemetryServerDeps,
): Promise<TelemetryServer> {
  const server = createServer((request, response) => {
    answer(deps, request, response).catch(() => respond(response, 500, 'text/plain', 'failed\n'));
  });
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.maxConnections = CONNECTIONS_MAX;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: Error) => {
      const address = `${bind.host ?? ''}:${bind.port}`;
      reject(new Error(`cannot listen on ${address}: ${cause.message}`, { cause }));
    });
    server.listen(bind.port, bind.host, resolve);
  });
  const { address, family, port } = boundAddress(server.address());
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}

async function answer(
  deps: TelemetryServerDeps,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = (request.url ?? '/').split('?', 1)[0];
  const allowed = request.method === 'GET' || request.method === 'HEAD';
  if (!allowed) {
    response.setHeader('allow', 'GET, HEAD');
    return respond(response, 405, 'text/plain', 'method not allowed\n');
  }
  switch (path) {
    case '/healthz':
      return respond(response, 200, 'text/plain', 'ok\n');
    case '/readyz': {
      const reasons = deps.notReady();
      return reasons.length === 0
        ? respond(response, 200, 'text/plain', 'ok\n')
        : respond(response, 503, 'text/plain', reasons.map((reason) => `${reason}\n`).join(''));
    }
    case '/metrics':
      return respond(response, 200, deps.metrics.contentType, await deps.metrics.metrics());
    default:
      return respond(response, 404, 'text/plain', 'not found\n');
  }
}

function respond(response: ServerResponse, status: number, type: string, body: string): void {
  if (response.headersSent) return;
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}

function boundAddress(address: AddressInfo | string | null): AddressInfo {
  if (address === null || typeof address === 'string') throw new Error('not bound to a port');
  return address;
}
