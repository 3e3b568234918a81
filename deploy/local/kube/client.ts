/**
 * Requests to an API server for the local stack: the node, the samples and the journey. Small on
 * purpose: importing all of `@kubernetes/client-node` would cost a second of each start.
 */
import { Agent, type Dispatcher, request as send } from 'undici';
import { isJsonObject, type JsonObject, type JsonValue } from '../control-plane/json.ts';
import { reasonOf } from '../fault.ts';

const REQUEST_TIMEOUT_MS = 10_000;

export interface KubeAccess {
  /** Base URL such as `https://127.0.0.1:6443`. */
  readonly server: string;
  readonly caPem?: string;
  readonly certPem?: string;
  readonly keyPem?: string;
  readonly insecure?: boolean;
  /** Authentication of one request. */
  headers(): Promise<Readonly<Record<string, string>>>;
}

export interface KubeRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: JsonValue;
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

/** An answer that is not 2xx; `status` 0 when there was none. */
export class KubeError extends Error {
  override readonly name = 'KubeError';
  readonly status: number;
  /** Kubernetes' machine-readable reason (`NotFound`, `AlreadyExists`), or empty. */
  readonly reason: string;

  constructor(status: number, reason: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.status = status;
    this.reason = reason;
  }
}

export interface KubeClient {
  readonly server: string;
  /** Sends one request and gives the parsed object; throws only `KubeError`. */
  request(request: KubeRequest): Promise<JsonObject>;
  /** Opens a stream of lines (a watch); `signal` ends it. */
  stream(request: KubeRequest & { signal: AbortSignal }): Promise<AsyncIterable<Uint8Array>>;
  close(): Promise<void>;
}

/** Makes a client with a connection pool of its own. */
export function createKubeClient(access: KubeAccess): KubeClient {
  const dispatcher = new Agent({
    connect: {
      ...(access.caPem === undefined ? {} : { ca: access.caPem }),
      ...(access.certPem === undefined ? {} : { cert: access.certPem }),
      ...(access.keyPem === undefined ? {} : { key: access.keyPem }),
      rejectUnauthorized: access.insecure !== true,
    },
    // Reconnecting is the watch's own business; here a dead server is told at once.
    connectTimeout: REQUEST_TIMEOUT_MS,
  });
  return {
    server: access.server,
    async request(request) {
      const deadline = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
      const signal =
        request.signal === undefined ? deadline : AbortSignal.any([request.signal, deadline]);
      const response = await open(access, dispatcher, request, signal);
      return parse(request, response.statusCode, await bodyText(request, response));
    },
    async stream(request) {
      const response = await open(access, dispatcher, request, request.signal);
      if (response.statusCode < 300) return response.body;
      parse(request, response.statusCode, await bodyText(request, response));
      throw new KubeError(response.statusCode, '', `${at(request)}: unexpected answer`);
    },
    close: () => dispatcher.destroy(),
  };
}

/** Access by a bearer token, with the server's CA as text. */
export function tokenAccess(server: string, caPem: string, token: string): KubeAccess {
  const headers = { authorization: `Bearer ${token}` };
  return { server, caPem, headers: async () => headers };
}

async function open(
  access: KubeAccess,
  dispatcher: Dispatcher,
  request: KubeRequest,
  signal: AbortSignal,
): Promise<Dispatcher.ResponseData> {
  const url = new URL(`${access.server}${request.path}`);
  for (const [key, value] of Object.entries(request.query ?? {})) url.searchParams.set(key, value);
  try {
    return await send(url, {
      method: request.method ?? 'GET',
      headers: {
        ...(await access.headers()),
        accept: 'application/json',
        'user-agent': 'local-stack',
        ...(request.body === undefined
          ? {}
          : { 'content-type': request.contentType ?? 'application/json' }),
      },
      body: request.body === undefined ? null : JSON.stringify(request.body),
      dispatcher,
      signal,
      headersTimeout: REQUEST_TIMEOUT_MS,
      bodyTimeout: 0,
    });
  } catch (error) {
    throw unreachable(request, error);
  }
}

async function bodyText(request: KubeRequest, response: Dispatcher.ResponseData): Promise<string> {
  try {
    return await response.body.text();
  } catch (error) {
    throw unreachable(request, error);
  }
}

function parse(request: KubeRequest, status: number, text: string): JsonObject {
  let value: JsonValue;
  try {
    value = JSON.parse(text);
  } catch {
    throw new KubeError(status, '', `${at(request)}: HTTP ${status}, not JSON`);
  }
  if (!isJsonObject(value)) throw new KubeError(status, '', `${at(request)}: not an object`);
  if (status < 300) return value;
  const reason = typeof value['reason'] === 'string' ? value['reason'] : '';
  const message = typeof value['message'] === 'string' ? value['message'] : `HTTP ${status}`;
  throw new KubeError(status, reason, `${at(request)}: ${message}`);
}

function unreachable(request: KubeRequest, cause: unknown): KubeError {
  return new KubeError(0, 'Unreachable', `${at(request)}: ${reasonOf(cause)}`, { cause });
}

function at(request: KubeRequest): string {
  return `${request.method ?? 'GET'} ${request.path}`;
}
