/**
 * The HTTPS server: who asks, what for, whether they may, and who answers. Every request ends with
 * an answer; closing ends the watches and waits for the rest.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { badRequest, forbidden, StatusError, unauthorized } from '../api/status-error.ts';
import { type Access, refusal } from './authorizer.ts';
import type { Credentials } from './credentials.ts';
import type { HandlerDeps } from './exchange.ts';
import { impersonated } from './impersonation.ts';
import { createOpenApiEndpoints } from './openapi-endpoints.ts';
import { handlePath } from './path-handler.ts';
import { type RequestInfo, requestInfo } from './request-info.ts';
import { handleResource } from './resource-handler.ts';
import { sendError, statusOf } from './response.ts';
import { ANONYMOUS, type Authenticate, type User } from './users.ts';

/** Longer than the pauses between the requests of a controller. */
const KEEP_ALIVE_MS = 90_000;
/** A list of long selectors still fits. */
const HEADER_BYTES_MAX = 64 * 1024;

export interface ApiServerDeps extends HandlerDeps {
  readonly authenticate: Authenticate;
  readonly credentials: Credentials;
  /** One line for each request. */
  readonly log: (line: string) => void;
}

export interface ApiServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Listens; rejects with an error that names the port when it cannot. */
export async function startApiServer(
  deps: ApiServerDeps,
  host: string,
  port: number,
): Promise<ApiServer> {
  const closing = new AbortController();
  const running = new Set<Promise<void>>();
  const handle = createHandler(deps, closing.signal);
  const { certificatePem: cert, keyPem: key } = deps.credentials;
  const options = { cert, key, keepAliveTimeout: KEEP_ALIVE_MS, maxHeaderSize: HEADER_BYTES_MAX };
  const server = createServer(options, (request, response) => {
    const task = handle(request, response).finally(() => running.delete(task));
    running.add(task);
  });
  await listen(server, host, port);
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: async () => {
      const closed = once(server, 'close');
      server.close();
      closing.abort();
      await Promise.allSettled(running);
      server.closeAllConnections();
      await closed;
    },
  };
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  try {
    server.listen(port, host);
    await once(server, 'listening');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') {
      const message = `port ${port} on ${host} is in use; stop what listens there or choose another`;
      throw new Error(message, { cause: error });
    }
    throw error;
  }
}

function createHandler(deps: ApiServerDeps, closing: AbortSignal) {
  const openApi = createOpenApiEndpoints(deps.registry);
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const startedMs = deps.clock.monotonicMs();
    const gone = new AbortController();
    const settled = new Promise<void>((resolve) => {
      response.once('close', () => {
        gone.abort();
        resolve();
      });
    });
    const signal = AbortSignal.any([gone.signal, closing]);
    let user: User = ANONYMOUS;
    try {
      const url = parseUrl(request);
      const info = requestInfo(request.method ?? '', url);
      if (info === undefined) throw badRequest('the path of the request is not well-formed');
      const caller = deps.authenticate(request.headers.authorization) ?? refuse();
      user = impersonated(deps.authorizer, caller, request.headersDistinct);
      authorize(deps, user, info);
      const exchange = { request, response, url, user, signal };
      if (info.type === 'path') handlePath(deps, openApi, exchange);
      else await handleResource(deps, exchange, info);
    } catch (error) {
      fail(deps, request, response, error);
    }
    deps.log(lineOf(request, response, user, deps.clock.monotonicMs() - startedMs));
    await settled;
  };
}

function parseUrl(request: IncomingMessage): URL {
  try {
    return new URL(request.url ?? '/', 'https://control-plane');
  } catch {
    throw badRequest('the path of the request is not well-formed');
  }
}

function refuse(): never {
  throw unauthorized();
}

function authorize({ authorizer }: HandlerDeps, user: User, info: RequestInfo): void {
  const access: Access = info;
  if (authorizer.allows(user, access)) return;
  if (user === ANONYMOUS) refuse();
  if (info.type === 'path') {
    throw new StatusError(403, 'Forbidden', refusal(user, access), {});
  }
  throw forbidden({ ...info, kind: '' }, info.name, refusal(user, access));
}

function fail(
  { log }: ApiServerDeps,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
): void {
  // The client left, or the server is closing: nobody reads an answer.
  if (response.destroyed) return;
  const status = statusOf(error);
  if (status.code >= 500 && error instanceof Error) {
    log(`${request.method} ${pathOf(request)} failed: ${error.stack ?? error.message}`);
  }
  if (response.headersSent) response.destroy();
  else sendError(response, status);
}

function lineOf(request: IncomingMessage, response: ServerResponse, user: User, ms: number) {
  const took = `${Math.round(ms)} ms`;
  return `${request.method} ${pathOf(request)} ${response.statusCode} ${took} ${user.name}`;
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? '').split('?', 1)[0] ?? '';
}
