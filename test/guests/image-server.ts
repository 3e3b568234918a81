/** A web server with images, over TLS, that can be told to serve them badly. */
import { createReadStream, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import { type Listening, listenWeb, makeCertificate } from '#test/fakes/proxies.ts';

export interface ImageServer {
  readonly url: string;
  /** Certificate of the server, which is its own authority. */
  readonly caPem: string;
  /** Trusts the server. */
  readonly dispatcher: Dispatcher;
  /** Downloads that were begun. */
  readonly requests: number;
  close(): Promise<void>;
}

export type Serve = (request: IncomingMessage, response: ServerResponse) => void;

/** Serves the file at `path`, whole. */
export function serveFile(path: string): Serve {
  return (_request, response) => {
    response.writeHead(200, { 'content-length': statSync(path).size });
    createReadStream(path).pipe(response);
  };
}

/** Serves the first `bytes` of a file, and then hangs up. */
export function serveCutOff(path: string, bytes: number): Serve {
  return (_request, response) => {
    response.writeHead(200, { 'content-length': statSync(path).size });
    createReadStream(path, { end: bytes - 1 })
      .on('end', () => response.destroy())
      .pipe(response, { end: false });
  };
}

/** `serve` may change what it does from request to request. */
export async function startImageServer(serve: Serve): Promise<ImageServer> {
  const certificate = await makeCertificate('ip', '127.0.0.1');
  let requests = 0;
  const server: Listening = await listenWeb((request, response) => {
    requests++;
    serve(request, response);
  }, certificate);
  const dispatcher = new Agent({ connect: { ca: certificate.cert } });
  return {
    url: `https://127.0.0.1:${server.port}/guest.qcow2`,
    caPem: certificate.cert,
    dispatcher,
    get requests() {
      return requests;
    },
    async close() {
      await dispatcher.destroy();
      await server.close();
    },
  };
}
