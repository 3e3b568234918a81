/** What the servers beside ours answer: a lease of the same form and size. */
import type { Lease } from '#shared/wire/lease.ts';
import { proxyEntry } from './fleet.ts';

/** What a crawler asks for; the body of a request, which the generator alone writes. */
export interface Wish {
  readonly ttlSeconds: number;
  readonly target?: string | undefined;
}

export type ProxyFacts = Lease['proxy'];

/** What a crawler is told of proxy number `index`. */
export function proxyFacts(index: number): ProxyFacts {
  const { namespace, name, host, port, protocol, attributes, ...rest } = proxyEntry(index);
  const { egressIP = '', latencyMillis = 0 } = rest;
  const url = `${protocol}://${host}:${port}`;
  const where = { cluster: 'bench', namespace, name, host, port, protocol, url };
  return { ...where, attributes, egressIP, latencyMillis };
}

export interface Grant {
  readonly id: string;
  readonly token: number;
  readonly proxy: ProxyFacts;
}

export function leaseOf({ id, token, proxy }: Grant, wish: Wish, nowMs: number): Lease {
  const { ttlSeconds, target } = wish;
  return {
    leaseID: id,
    token,
    proxy,
    ...(target === undefined ? {} : { target }),
    ttlSeconds,
    expiresAt: new Date(nowMs + ttlSeconds * 1000).toISOString(),
    expiresInMs: ttlSeconds * 1000,
  };
}
