/**
 * Requests to the API server: JSON in, JSON out, over one shared connection pool. The generated
 * API classes of `@kubernetes/client-node` are left out on purpose: importing them costs 60 MB
 * resident and 2.0.1 opens a TLS connection per request; its types and its kubeconfig
 * authentication are used (see `access.ts`).
 */
import { Agent, type Dispatcher, ProxyAgent, request as send } from 'undici';
import { withDeadline } from '#agent/runtime/deadline.ts';
import { readText } from '#agent/runtime/response-body.ts';
import type { Clock } from '#shared/clock.ts';
import type { ClusterAccess, TlsMaterial } from './access.ts';
import { errorFromResponse, KubeError } from './errors.ts';

export type PatchType =
  | 'application/merge-patch+json'
  | 'application/json-patch+json'
  | 'application/strategic-merge-patch+json'
  | 'application/apply-patch+yaml';

export interface KubeRequest {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute path, already percent-encoded: `resourcePath` makes it. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Defaults to `application/json`; a patch names its kind here. */
  readonly contentType?: 'application/json' | PatchType;
  /** Default 15 s. */
  readonly timeoutMs?: number;
}

export interface KubeClient {
  /** Base URL, for logs. */
  readonly server: string;
  /**
   * Sends one request and gives the parsed body. Throws only `KubeError`, or the signal's reason
   * when the caller aborts. The deadline covers everything up to the last byte.
   */
  request(request: KubeRequest, signal?: AbortSignal): Promise<unknown>;
  /** Opens a stream (a watch); the deadline covers the headers, `signal` ends the body. */
  stream(request: KubeRequest, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>>;
  /** Ends every connection, also those in use. */
  close(): Promise<void>;
}

export const REQUEST_TIMEOUT_MS = 15_000;
/** Well above a list page of 500 objects of the largest size that the API server stores. */
const RESPONSE_BYTES_MAX = 256 * 1024 * 1024;
const ERROR_BODY_BYTES_MAX = 64 * 1024;
/** Shorter than the idle timeouts of common load balancers, as client-go has it. */
const TCP_KEEP_ALIVE_DELAY_MS = 30_000;

export interface KubeClientDeps {
  readonly access: ClusterAccess;
  readonly clock: Clock;
  /** Shown in the API server's audit log. */
  readonly userAgent: string;
}

export function createKubeClient({ access, clock, userAgent }: KubeClientDeps): KubeClient {
  const pool = createPool(access.proxyUrl);

  async function open(
    request: KubeRequest,
    signal: AbortSignal | undefined,
    headersTimeoutMs: number,
  ): Promise<Dispatcher.ResponseData> {
    const response = await attempt(request, signal, headersTimeoutMs);
    if (response.statusCode !== 401) return response;
    // A token that was replaced on disk is the common reason; read it again, once.
    await response.body.dump();
    access.refresh();
    return attempt(request, signal, headersTimeoutMs);
  }

  async function attempt(
    request: KubeRequest,
    signal: AbortSignal | undefined,
    headersTimeoutMs: number,
  ): Promise<Dispatcher.ResponseData> {
    const { headers, tls } = await access.credentials();
    const hasBody = request.body !== undefined;
    return send(requestUrl(access.server, request), {
      method: request.method ?? 'GET',
      headers: {
        ...headers,
        accept: 'application/json',
        'user-agent': userAgent,
        ...(hasBody ? { 'content-type': request.contentType ?? 'application/json' } : {}),
      },
      body: hasBody ? JSON.stringify(request.body) : null,
      dispatcher: pool.dispatcher(tls),
      signal: signal ?? null,
      headersTimeout: headersTimeoutMs,
      bodyTimeout: 0,
    });
  }

  async function failure(at: string, response: Dispatcher.ResponseData): Promise<KubeError> {
    const body = await readText(response.body, ERROR_BODY_BYTES_MAX);
    const retryAfter = response.headers['retry-after'];
    return errorFromResponse(
      at,
      response.statusCode,
      body,
      typeof retryAfter === 'string' ? retryAfter : undefined,
    );
  }

  return {
    server: access.server,
    request(request, signal) {
      const at = describe(request);
      const timeoutMs = request.timeoutMs ?? REQUEST_TIMEOUT_MS;
      return guarded(at, signal, () =>
        withDeadline(clock, timeoutMs, signal, async (deadline) => {
          const response = await open(request, deadline, timeoutMs);
          if (response.statusCode >= 400) throw await failure(at, response);
          const text = await readText(response.body, RESPONSE_BYTES_MAX);
          return parseAnswer(at, response.statusCode, text);
        }),
      );
    },
    stream(request, signal) {
      const at = describe(request);
      return guarded(at, signal, async () => {
        signal.throwIfAborted();
        const response = await open(request, signal, request.timeoutMs ?? REQUEST_TIMEOUT_MS);
        if (response.statusCode >= 400) throw await failure(at, response);
        return response.body;
      });
    },
    close: () => pool.close(),
  };
}

function describe(request: KubeRequest): string {
  return `${request.method ?? 'GET'} ${request.path}`;
}

async function guarded<T>(
  at: string,
  signal: AbortSignal | undefined,
  call: () => Promise<T>,
): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    if (error instanceof KubeError) throw error;
    throw new KubeError(
      { status: 0, reason: 'Unreachable' },
      `${at}: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
}

/** One pool at a time: a changed CA or client certificate gets a new one, the old one drains. */
function createPool(proxyUrl: string | undefined) {
  let current: { fingerprint: string; agent: Agent | ProxyAgent } | undefined;
  return {
    dispatcher(tls: TlsMaterial): Dispatcher {
      const fingerprint = JSON.stringify(tls);
      if (current?.fingerprint === fingerprint) return current.agent;
      // Closing waits for requests in flight, so it must not be waited for here.
      current?.agent.close().catch(() => {});
      const connect = {
        ...tls,
        keepAlive: true,
        keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY_MS,
      };
      const agent =
        proxyUrl === undefined
          ? new Agent({ connect })
          : new ProxyAgent({ uri: proxyUrl, requestTls: connect });
      current = { fingerprint, agent };
      return agent;
    },
    async close(): Promise<void> {
      const agent = current?.agent;
      current = undefined;
      await agent?.destroy();
    },
  };
}

function requestUrl(server: string, request: KubeRequest): string {
  const url = new URL(`${server.replace(/\/+$/, '')}${request.path}`);
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url.href;
}

function parseAnswer(at: string, status: number, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new KubeError(
      { status, reason: 'Other' },
      `${at}: the answer is not JSON; the address may not be that of a Kubernetes API server`,
      { cause },
    );
  }
}
