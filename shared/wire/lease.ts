/** Requests and answers of the crawlers' API (contract §2). */
import { z } from 'zod';
import { selectorSchema } from '../crd/attributes.ts';

/** Longest target that is taken, as a host name or a URL's host. */
export const TARGET_LENGTH_MAX = 253;
/** Largest body that a crawler may send. */
export const CRAWLER_BODY_BYTES_MAX = 64 * 1024;

export const STRATEGIES = ['least-loaded', 'spread'] as const;
export type Strategy = (typeof STRATEGIES)[number];

export const REPORT_RESULTS = ['ok', 'rate_limited', 'banned'] as const;
export type ReportResult = (typeof REPORT_RESULTS)[number];

/** Seconds; the upper bound is a setting of the edge (`MAX_LEASE_TTL_SECONDS`). */
const ttlSecondsSchema = z.number().int().min(1);

/** Host name or URL as the caller wrote it; `normalizeTarget` reduces it. */
const targetSchema = z.string().min(1).max(2048);

/**
 * Records pass over the key `__proto__` without a word; here that would widen what a crawler asked
 * for, so it is refused as every other key that is no label's.
 */
const wishedSelectorSchema = z.preprocess((selector, ctx) => {
  if (typeof selector === 'object' && selector !== null && Object.hasOwn(selector, '__proto__')) {
    ctx.addIssue({ code: 'custom', path: ['__proto__'], message: 'Invalid key', input: selector });
  }
  return selector;
}, selectorSchema);

export const acquireRequestSchema = z.strictObject({
  selector: wishedSelectorSchema.optional(),
  ttlSeconds: ttlSecondsSchema.optional(),
  target: targetSchema.optional(),
  strategy: z.enum(STRATEGIES).optional(),
});
export type AcquireRequest = z.infer<typeof acquireRequestSchema>;

export const renewRequestSchema = z.strictObject({ ttlSeconds: ttlSecondsSchema.optional() });
export type RenewRequest = z.infer<typeof renewRequestSchema>;

export const reportRequestSchema = z.strictObject({
  result: z.enum(REPORT_RESULTS),
  target: targetSchema.optional(),
  retryAfterSeconds: z.number().int().min(1).optional(),
});
export type ReportRequest = z.infer<typeof reportRequestSchema>;

const proxyProtocolSchema = z.enum(['http', 'https', 'socks5']);

export const leasedProxySchema = z.object({
  cluster: z.string(),
  namespace: z.string(),
  name: z.string(),
  host: z.string(),
  port: z.number().int(),
  protocol: proxyProtocolSchema,
  /** What a crawler hands to its HTTP client, credentials included. */
  url: z.string(),
  attributes: z.record(z.string(), z.string()),
  egressIP: z.string().optional(),
  latencyMillis: z.number().int().optional(),
});

export const leaseSchema = z.object({
  leaseID: z.string(),
  /** Fencing token: only ever grows. */
  token: z.number().int(),
  proxy: leasedProxySchema,
  target: z.string().optional(),
  ttlSeconds: z.number().int(),
  expiresAt: z.iso.datetime(),
  expiresInMs: z.number().int(),
});
export type Lease = z.infer<typeof leaseSchema>;

/** Proxies on a page of `GET /v1/proxies` when the caller names no limit, and at most. */
export const PAGE_LIMIT_DEFAULT = 100;
export const PAGE_LIMIT_MAX = 1_000;

export const listedProxySchema = z.object({
  cluster: z.string(),
  namespace: z.string(),
  name: z.string(),
  host: z.string(),
  port: z.number().int(),
  protocol: proxyProtocolSchema,
  attributes: z.record(z.string(), z.string()),
  healthy: z.boolean(),
  latencyMillis: z.number().int().optional(),
  egressIP: z.string().optional(),
  activeLeases: z.number().int(),
  maxLeases: z.number().int(),
  leasable: z.boolean(),
  draining: z.boolean(),
});
export type ListedProxy = z.infer<typeof listedProxySchema>;

export const proxyListSchema = z.object({
  proxies: z.array(listedProxySchema),
  /** All that match, not this page. */
  count: z.number().int(),
  nextCursor: z.string().optional(),
});
export type ProxyList = z.infer<typeof proxyListSchema>;

export const echoSchema = z.object({
  ip: z.string(),
  country: z.string().nullable(),
  asn: z.number().int().nullable(),
  colo: z.string().nullable(),
});

export const statsSchema = z.object({
  proxies: z.object({
    total: z.number().int(),
    healthy: z.number().int(),
    unhealthy: z.number().int(),
    stale: z.number().int(),
    cordoned: z.number().int(),
    draining: z.number().int(),
  }),
  leases: z.object({ active: z.number().int() }),
  cooldowns: z.number().int(),
  agents: z.array(
    z.object({
      cluster: z.string(),
      term: z.number().int(),
      proxies: z.number().int(),
      lastSyncAgeSeconds: z.number(),
      stale: z.boolean(),
    }),
  ),
});
export type Stats = z.infer<typeof statsSchema>;
