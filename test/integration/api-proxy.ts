/**
 * A relay in front of an API server that understands what passes: a test decides at each request
 * what becomes of it, before the server sees it, after the server took it, and after the caller
 * got the answer. It speaks TLS with a certificate of its own; credentials pass through.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Agent, type Dispatcher, request as send } from 'undici';
import { makeCertificate } from '#test/fakes/proxies.ts';

export interface ApiCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** JSON text, or empty. */
  readonly body: string;
  readonly isWatch: boolean;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** `drop` ends the caller's connection without an answer; undefined lets things take their way. */
export type Decision = ApiAnswer | 'drop' | undefined;

/** Each may wait: what it decides on waits with it. */
export interface ApiHooks {
  /** The request is here and not forwarded yet; an answer is given in the server's place. */
  before?(call: ApiCall): Decision | Promise<Decision>;
  /** The server has taken the request and answered; the caller does not know. Not for watches. */
  taken?(call: ApiCall, answer: ApiAnswer): Decision | Promise<Decision>;
  /** The whole answer has been handed to the caller's connection. Not for watches. */
  answered?(call: ApiCall, answer: ApiAnswer): void;
}

export interface ApiProxy {
  readonly url: string;
  readonly caPem: string;
  /** Watches that are open now. */
  readonly openWatches: number;
  /** Breaks every open watch in the middle, as a dying load balancer does. */
  cutWatches(): void;
  close(): Promise<void>;
}

/** Belong to one connection, or are made anew. */
const OWN_HEADERS = new Set(['connection', 'content-length', 'host', 'keep-alive']);
OWN_HEADERS.add('transfer-encoding');

export async function startApiProxy(
  target: { readonly url: string; readonly caPem: string },
  hooks: ApiHooks,
): Promise<ApiProxy> {
  const certificate = await makeCertificate('ip', '127.0.0.1');
  const upstream = new Agent({ connect: { ca: target.caPem }, headersTimeout: 0, bodyTimeout: 0 });
  const watches = new Set<ServerResponse>();

  async function relay(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const call = await readCall(incoming);
    const decided = await hooks.before?.(call);
    if (decided !== undefined) return finish(call, outgoing, decided);
    if (call.isWatch) return stream(incoming, outgoing, call);
    const response = await forward(incoming, call, null);
    const answer: ApiAnswer = {
      status: response.statusCode,
      headers: passed(response.headers),
      body: await response.body.text(),
    };
    return finish(call, outgoing, (await hooks.taken?.(call, answer)) ?? answer);
  }

  /** Not aborted when the caller goes away: what was sent to a server is on its way. */
  function forward(
    incoming: IncomingMessage,
    { method, body }: ApiCall,
    signal: AbortSignal | null,
  ): Promise<Dispatcher.ResponseData> {
    return send(`${target.url}${incoming.url ?? '/'}`, {
      method: method as Dispatcher.HttpMethod,
      headers: passed(incoming.headers),
      body: body === '' ? null : body,
      dispatcher: upstream,
      signal,
    });
  }

  async function finish(
    call: ApiCall,
    outgoing: ServerResponse,
    decision: ApiAnswer | 'drop',
  ): Promise<void> {
    if (decision === 'drop' || outgoing.destroyed) {
      outgoing.destroy();
      return;
    }
    const type = { 'content-type': 'application/json' };
    outgoing.writeHead(decision.status, { ...type, ...decision.headers });
    await new Promise<void>((resolve) => {
      outgoing.once('close', resolve);
      outgoing.end(decision.body, resolve);
    });
    hooks.answered?.(call, decision);
  }

  async function stream(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    call: ApiCall,
  ): Promise<void> {
    const ending = new AbortController();
    outgoing.once('close', () => ending.abort());
    const response = await forward(incoming, call, ending.signal);
    outgoing.writeHead(response.statusCode, passed(response.headers));
    outgoing.flushHeaders();
    watches.add(outgoing);
    try {
      for await (const chunk of response.body) outgoing.write(chunk);
      outgoing.end();
    } finally {
      watches.delete(outgoing);
    }
  }

  const server = createServer(certificate, (incoming, outgoing) => {
    outgoing.on('error', () => {});
    // Whatever fails in between looks to the caller as a broken connection does.
    relay(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}`,
    caPem: certificate.cert,
    get openWatches() {
      return watches.size;
    },
    cutWatches() {
      for (const outgoing of watches) outgoing.destroy();
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await upstream.destroy();
      await closed;
    },
  };
}

async function readCall(incoming: IncomingMessage): Promise<ApiCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'https://relay');
  return {
    method: incoming.method ?? 'GET',
    path: pathname,
    query: searchParams,
    body: Buffer.concat(chunks).toString('utf8'),
    isWatch: ['true', '1'].includes(searchParams.get('watch') ?? ''),
  };
}

function passed(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || OWN_HEADERS.has(name) ? [] : [[name, String(value)]],
    ),
  );
}
