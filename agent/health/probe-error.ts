/**
 * From what undici, the sockets and TLS throw to a reason and a message. Messages are made here
 * and never taken from the error, whose text may hold a URL with credentials.
 */
import type { ProbeReason } from './reasons.ts';
import type { ProbeTarget } from './targets.ts';

export interface ProbeFailure {
  readonly reason: ProbeReason;
  readonly message: string;
}

/** Errors wrap one another (undici's proxy errors, AggregateError of happy eyeballs). */
const CAUSES_MAX = 8;

const BY_CODE: Readonly<Record<string, ProbeFailure>> = {
  ECONNREFUSED: { reason: 'ConnectionRefused', message: 'the proxy refused the connection' },
  ECONNRESET: { reason: 'ConnectionReset', message: 'the connection was reset' },
  EPIPE: { reason: 'ConnectionReset', message: 'the connection was closed while in use' },
  UND_ERR_SOCKET: { reason: 'ConnectionReset', message: 'the connection was closed early' },
  UND_ERR_PRX_CONN: { reason: 'ConnectionReset', message: 'the proxy closed the connection' },
  EHOSTUNREACH: { reason: 'Unreachable', message: 'there is no route to the proxy' },
  ENETUNREACH: { reason: 'Unreachable', message: 'there is no route to the proxy' },
  EADDRNOTAVAIL: { reason: 'Unreachable', message: 'there is no route to the proxy' },
  ENOTFOUND: { reason: 'HostNotFound', message: "the proxy's host name does not resolve" },
  EAI_AGAIN: { reason: 'HostNotFound', message: "the proxy's host name did not resolve now" },
  UND_ERR_PRX_TLS: { reason: 'TlsError', message: "the proxy's certificate does not verify" },
};

const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);

/** Codes of OpenSSL's verification, such as DEPTH_ZERO_SELF_SIGNED_CERT, besides `ERR_TLS_…`. */
const TLS_CODE =
  /^(ERR_TLS_|ERR_SSL_|EPROTO$|.*(CERT|CRL|ISSUER|CA_)|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_)/;

/** `timedOut` tells whether the deadline of the probe had passed when `error` was thrown. */
export function classifyProbeError(
  error: unknown,
  timedOut: boolean,
  target: ProbeTarget,
): ProbeFailure {
  const errors = chain(error);
  if (timedOut || errors.some(isTimeout)) {
    return { reason: 'Timeout', message: `no complete answer within ${target.timeoutMs} ms` };
  }
  const answered = errors.map(proxyAnswer).find((status) => status !== undefined);
  if (answered !== undefined) return proxyRefusal(answered);
  for (const each of errors) {
    const failure = byCode(codeOf(each));
    if (failure !== undefined) return failure;
  }
  return { reason: 'ProbeFailed', message: 'the probe failed for an unknown reason' };
}

function byCode(code: string | undefined): ProbeFailure | undefined {
  if (code === undefined) return undefined;
  const known = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined;
  if (known !== undefined) return known;
  if (code === 'UND_ERR_SOCKS5_AUTH_FAILED' || code === 'UND_ERR_SOCKS5_AUTH_REJECTED') {
    return AUTH_FAILED;
  }
  if (code.startsWith('UND_ERR_SOCKS5')) {
    return { reason: 'ProxyError', message: `the SOCKS proxy refused (${code})` };
  }
  if (TLS_CODE.test(code)) {
    return { reason: 'TlsError', message: `TLS failed on the way to the target (${code})` };
  }
  return undefined;
}

const AUTH_FAILED: ProbeFailure = {
  reason: 'ProxyAuthFailed',
  message: 'the proxy does not accept the credentials (misconfigured, not dead)',
};

function proxyRefusal(status: number): ProbeFailure {
  if (status === 407) return AUTH_FAILED;
  return {
    reason: 'ProxyError',
    message: `the proxy answered ${status} to the request for a tunnel`,
  };
}

/** undici gives the proxy's status only inside the text of two errors. */
function proxyAnswer(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = codeOf(error);
  if (code !== 'UND_ERR_ABORTED' && code !== 'UND_ERR_INVALID_ARG') return undefined;
  const match = /\((\d{3})\)/.exec(error.message);
  return match === null ? undefined : Number(match[1]);
}

function isTimeout(error: unknown): boolean {
  return TIMEOUT_CODES.has(codeOf(error) ?? '');
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** The error, its causes and the parts of an aggregate, outermost first. */
function chain(error: unknown): unknown[] {
  const found: unknown[] = [];
  const pending: unknown[] = [error];
  while (pending.length > 0 && found.length < CAUSES_MAX) {
    const next = pending.shift();
    found.push(next);
    if (next instanceof AggregateError) pending.push(...next.errors);
    if (next instanceof Error && next.cause !== undefined) pending.push(next.cause);
  }
  return found;
}
