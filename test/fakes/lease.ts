/** A lease as the edge answers it. */
import type { Lease } from '#shared/wire/lease.ts';

export function leaseOf(leaseID: string, token = 1): Lease {
  return {
    leaseID,
    token,
    proxy: {
      cluster: 'alpha',
      namespace: 'crawl',
      name: 'a',
      host: 'a.example',
      port: 3128,
      protocol: 'http',
      url: 'http://a.example:3128',
      attributes: {},
    },
    ttlSeconds: 300,
    expiresAt: '2026-01-01T00:05:00.000Z',
    expiresInMs: 300_000,
  };
}
