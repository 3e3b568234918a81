/**
 * Small real proxies and targets on 127.0.0.1 for tests of what passes through them: an HTTP
 * forward proxy, one behind TLS, a SOCKS5 proxy, and servers that misbehave in one way each.
 */
import { webcrypto } from 'node:crypto';
import type { Server as HttpServer, IncomingMessage, RequestListener } from 'node:http';
import { createServer as createHttpServer, request as sendRequest } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';

export interface Listening {
  readonly port: number;
  /** Connections so far. */
  readonly connections: number;
  /** Connections that are open now. */
  readonly openConnections: number;
  close(): Promise<void>;
}

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A self-signed certificate for an address or a name, which is its own authority. */
export async function makeCertificate(type: 'ip' | 'dns', value: string): Promise<Certificate> {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${value}`,
    keys,
    notBefore: new Date('2020-01-01T00:00:00Z'),
    notAfter: new Date('2090-01-01T00:00:00Z'),
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true),
      new x509.SubjectAlternativeNameExtension([{ type, value }]),
    ],
  });
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', keys.privateKey);
  return { cert: made.toString('pem'), key: x509.PemConverter.encode(pkcs8, 'PRIVATE KEY') };
}

/** A plain TCP server; `onConnection` does whatever is wrong with it. */
export function listenTcp(onConnection: (socket: Socket) => void): Promise<Listening> {
  return listen(createServer(onConnection));
}

/** A web server, over TLS when it gets a certificate. */
export function listenWeb(handler: RequestListener, tls?: Certificate): Promise<Listening> {
  return listen(tls === undefined ? createHttpServer(handler) : createHttpsServer(tls, handler));
}

export interface ForwardProxyOptions {
  /** The proxy itself speaks TLS. */
  readonly tls?: Certificate;
  /** `user:password` that it asks for. */
  readonly credentials?: string;
  /** Told the first line of each request: `CONNECT host:port` or `GET http://…`. */
  readonly onRequest?: (line: string, message: IncomingMessage) => void;
  /** Status for a target that cannot be reached, with Squid's mark when it is set. */
  readonly squidMark?: boolean;
  /** Where it listens; a free port of 127.0.0.1 by default. */
  readonly at?: { readonly host: string; readonly port: number };
}

/** A forward proxy for plain requests in absolute form and for CONNECT. */
export function listenForwardProxy(options: ForwardProxyOptions = {}): Promise<Listening> {
  const refuses = ({ headers }: IncomingMessage) => {
    if (options.credentials === undefined) return false;
    const expected = `Basic ${Buffer.from(options.credentials).toString('base64')}`;
    return headers['proxy-authorization'] !== expected;
  };
  const mark = options.squidMark === false ? {} : { 'x-squid-error': 'ERR_CONNECT_FAIL 111' };
  const handler: RequestListener = (incoming, outgoing) => {
    options.onRequest?.(`${incoming.method} ${incoming.url}`, incoming);
    if (refuses(incoming)) {
      outgoing.writeHead(407).end();
      return;
    }
    const target = URL.parse(incoming.url ?? '');
    if (target === null) {
      outgoing.writeHead(400).end();
      return;
    }
    const { host: _, ...headers } = incoming.headers;
    const upstream = sendRequest(target, { headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    upstream.on('error', () => outgoing.writeHead(503, mark).end('cannot connect'));
    upstream.end();
  };
  const server =
    options.tls === undefined ? createHttpServer(handler) : createHttpsServer(options.tls, handler);
  server.on('connect', (incoming, client) => {
    options.onRequest?.(`CONNECT ${incoming.url}`, incoming);
    client.on('error', () => {});
    if (refuses(incoming)) {
      client.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
      return;
    }
    const [host = '', port] = (incoming.url ?? '').split(':');
    const upstream = connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      upstream.pipe(client);
      client.pipe(upstream);
    });
    upstream.on('error', () => client.end('HTTP/1.1 503 Service Unavailable\r\n\r\n'));
    client.on('close', () => upstream.destroy());
  });
  return listen(server, options.at);
}

/** A SOCKS5 proxy (RFC 1928, RFC 1929) for CONNECT to IPv4 addresses and names. */
export function listenSocks(credentials?: { username: string; password: string }) {
  return listenTcp((socket) => {
    socket.on('error', () => {});
    void serveSocks(socket, credentials).catch(() => socket.destroy());
  });
}

async function serveSocks(
  socket: Socket,
  credentials: { username: string; password: string } | undefined,
): Promise<void> {
  const method = credentials === undefined ? 0 : 2;
  const offered = await nextChunk(socket);
  const accepted = [...offered.subarray(2)].includes(method);
  socket.write(Buffer.from([5, accepted ? method : 0xff]));
  if (!accepted) {
    socket.end();
    return;
  }
  if (credentials !== undefined) {
    const message = await nextChunk(socket);
    const userEnd = 2 + (message[1] ?? 0);
    const username = message.subarray(2, userEnd).toString();
    const password = message.subarray(userEnd + 1).toString();
    const good = username === credentials.username && password === credentials.password;
    socket.write(Buffer.from([1, good ? 0 : 1]));
    if (!good) {
      socket.end();
      return;
    }
  }
  const wanted = await nextChunk(socket);
  const byName = wanted[3] === 3;
  const end = byName ? 5 + (wanted[4] ?? 0) : 8;
  const host = byName ? wanted.subarray(5, end).toString() : wanted.subarray(4, end).join('.');
  const upstream = connect(wanted.readUInt16BE(end), host, () => {
    socket.write(Buffer.from([5, 0, 0, 1, 0, 0, 0, 0, 0, 0]));
    upstream.pipe(socket);
    socket.pipe(upstream);
  });
  upstream.on('error', () => socket.end(Buffer.from([5, 5, 0, 1, 0, 0, 0, 0, 0, 0])));
  socket.on('close', () => upstream.destroy());
}

function nextChunk(socket: Socket): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    socket.once('data', (chunk) => {
      socket.pause();
      resolve(chunk);
    });
    socket.once('close', () => reject(new Error('closed')));
    socket.resume();
  });
}

/** A port on which nothing listens. */
export async function closedPort(): Promise<number> {
  const server = await listenTcp((socket) => socket.destroy());
  await server.close();
  return server.port;
}

async function listen(
  server: Server | HttpServer,
  at = { host: '127.0.0.1', port: 0 },
): Promise<Listening> {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections++;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(at.port, at.host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    get connections() {
      return connections;
    },
    get openConnections() {
      return sockets.size;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
