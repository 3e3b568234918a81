/** What is probed, with the figures of a proxy that says nothing of its health check. */
import type { ProbeTarget } from '#agent/health/targets.ts';

export function targetWith(fields: Partial<ProbeTarget>): ProbeTarget {
  return {
    key: 'crawl/one',
    identity: 'i',
    protocol: 'http',
    host: '127.0.0.1',
    port: 1,
    url: 'http://t/',
    echo: false,
    expectedStatus: 200,
    intervalMs: 10_000,
    timeoutMs: 5000,
    successThreshold: 1,
    failureThreshold: 3,
    ...fields,
  };
}
