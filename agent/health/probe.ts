/**
 * One probe: fetch a page through the proxy, the way a crawler would, over connections that nobody
 * used before (a kept tunnel would go on working while new ones are refused). Plain targets are
 * asked for in absolute form, https targets through CONNECT with TLS verified inside the tunnel.
 */
import tls from 'node:tls';
import { Client, type Dispatcher, ProxyAgent, request } from 'undici';
import { z } from 'zod';
import type { Clock } from '#shared/clock.ts';
import type { Probe } from './engine.ts';
import { classifyProbeError } from './probe-error.ts';
import type { ProbeReason } from './reasons.ts';
import type { ProbeTarget } from './targets.ts';
import type { ProbeResult } from './verdict.ts';

/** What a probe reads of an answer; the rest is cut off with the connection. */
const BODY_BYTES_MAX = 64 * 1024;
const USER_AGENT = 'egress-probe/1';

const echoSchema = z.object({ ip: z.union([z.ipv4(), z.ipv6()]) });

export interface ProbeOptions {
  /** PEM certificates to trust beside the usual roots, for proxies and targets alike. */
  readonly extraCa?: readonly string[];
}

/** A probe never rejects, except with the reason of an aborted `signal`. */
export function createProbe(deps: { clock: Clock }, options: ProbeOptions = {}): Probe {
  // Parsing the roots costs milliseconds; one context serves every handshake.
  const secureContext = tls.createSecureContext(
    options.extraCa === undefined ? {} : { ca: [...tls.rootCertificates, ...options.extraCa] },
  );
  return async (target, signal) => {
    const startedMs = deps.clock.monotonicMs();
    const elapsedMs = () => Math.round(deps.clock.monotonicMs() - startedMs);
    const deadline = AbortSignal.timeout(target.timeoutMs);
    const agent = openProxy(target, secureContext);
    try {
      const answer = await fetchThrough(agent, target, AbortSignal.any([signal, deadline]));
      return judge(target, answer, elapsedMs());
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      const failure = classifyProbeError(error, deadline.aborted, target);
      return { ok: false, ...failure, latencyMillis: elapsedMs() };
    } finally {
      // `close` would wait for a CONNECT that hangs.
      await agent.destroy().catch(() => undefined);
    }
  };
}

function openProxy(target: ProbeTarget, secureContext: tls.SecureContext): ProxyAgent {
  const { protocol, host, port, credentials, timeoutMs } = target;
  const authority = host.includes(':') ? `[${host}]` : host;
  const secure = { secureContext, allowH2: false };
  return new ProxyAgent({
    uri: `${protocol}://${authority}:${port}`,
    // Bounds what the signal cannot end: a TLS or SOCKS handshake that hangs.
    connectTimeout: timeoutMs,
    connections: 1,
    requestTls: secure,
    clientFactory: (origin: URL, options: object) =>
      new Client(origin, { ...options, headersTimeout: timeoutMs }),
    // undici speaks TLS to a SOCKS proxy as soon as these options are there.
    ...(protocol === 'https' ? { proxyTls: secure } : {}),
    ...(credentials === undefined ? {} : authorization(protocol, credentials)),
  });
}

function authorization(
  protocol: ProbeTarget['protocol'],
  { username, password }: NonNullable<ProbeTarget['credentials']>,
): object {
  if (protocol === 'socks5') return { username, password };
  const encoded = Buffer.from(`${username}:${password}`, 'utf8').toString('base64');
  return { token: `Basic ${encoded}` };
}

interface Answer {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  readonly body: string;
}

async function fetchThrough(
  agent: ProxyAgent,
  target: ProbeTarget,
  signal: AbortSignal,
): Promise<Answer> {
  const response = await request(target.url, {
    dispatcher: agent,
    signal,
    reset: true,
    headersTimeout: target.timeoutMs,
    bodyTimeout: target.timeoutMs,
    headers: { 'user-agent': USER_AGENT, accept: '*/*', 'cache-control': 'no-cache' },
  });
  const body = await readBounded(response.body);
  return { status: response.statusCode, headers: response.headers, body };
}

/** The first `BODY_BYTES_MAX` bytes; they must arrive in time, what follows need not. */
async function readBounded(body: Dispatcher.ResponseData['body']): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    const piece: Uint8Array = chunk;
    chunks.push(piece);
    bytes += piece.byteLength;
    if (bytes >= BODY_BYTES_MAX) break;
  }
  return Buffer.concat(chunks).subarray(0, BODY_BYTES_MAX).toString('utf8');
}

function judge(target: ProbeTarget, answer: Answer, latencyMillis: number): ProbeResult {
  const failure = (reason: ProbeReason, message: string): ProbeResult => ({
    ok: false,
    reason,
    message,
    latencyMillis,
  });
  if (madeByProxy(answer)) {
    return failure('ProxyError', `the proxy itself answered ${answer.status}, not the target`);
  }
  if (answer.status !== target.expectedStatus) {
    return failure(
      'UnexpectedStatus',
      `the target answered ${answer.status}, expected ${target.expectedStatus}`,
    );
  }
  if (!target.echo) return { ok: true, latencyMillis };
  const egressIP = echoedAddress(answer.body);
  if (egressIP === undefined) {
    return failure('UnexpectedBody', 'the answer is not the echo page of the edge');
  }
  return { ok: true, latencyMillis, egressIP };
}

/**
 * In absolute form an error page of the proxy looks like an answer of the target, so that a dead
 * target would count as healthy where 503 is expected. Squid marks its own pages with a header;
 * the standard way is `Proxy-Status` with an `error` parameter (RFC 9209).
 */
function madeByProxy({ headers }: Answer): boolean {
  if (headers['x-squid-error'] !== undefined) return true;
  const proxyStatus = [headers['proxy-status'] ?? []].flat().join(',');
  return /;\s*error=/i.test(proxyStatus);
}

function echoedAddress(body: string): string | undefined {
  try {
    const parsed = echoSchema.safeParse(JSON.parse(body));
    return parsed.success ? parsed.data.ip : undefined;
  } catch {
    return undefined;
  }
}
