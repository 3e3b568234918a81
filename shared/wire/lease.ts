/** Requests and answers of the crawlers' API (contract §2). */
import { z } from 'zod';
import { selectorSchema } from '../crd/attributes.ts';

/** Longest target that is taken, as a host name or a URL's host. */
export const TARGET_LENGTH_MAX = 253;
/** Largest body that a crawler may send. */
export const CRAWLER_BODY_BYTES_MAX = 64 * 1024;

/** Longest time that a request may wait in the queue. */
export const WAIT_SECONDS_MAX = 30;
export const SESSION_KEY_LENGTH_MAX = 256;
/** `Idempotency-Key`: printable ASCII, as long as UUIDs and hashes are. */
export const IDEMPOTENCY_KEY_LENGTH_MAX = 256;

export const STRATEGIES = ['least-loaded', 'spread'] as const;
export type Strategy = (typeof STRATEGIES)[number];

export const REPORT_RESULTS = ['ok', 'rate_limited', 'banned'] as const;
export type ReportResult = (typeof REPORT_RESULTS)[number];

const described = (description: string) => ({ description });

const ttlSecondsSchema = z
  .number()
  .int()
  .min(1)
  .meta(described('How long the lease lives, up to `MAX_LEASE_TTL_SECONDS`; 300 by default.'));

/** As the caller wrote it; `normalizeTarget` reduces it. */
const targetSchema = z
  .string()
  .min(1)
  .max(2048)
  .meta(described('Host name or URL that is crawled; reduced to its lower-case host name.'));

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

export const acquireRequestSchema = z
  .strictObject({
    selector: wishedSelectorSchema
      .optional()
      .meta(described('Attributes that the proxy must have, as Kubernetes labels.')),
    ttlSeconds: ttlSecondsSchema.optional(),
    target: targetSchema.optional(),
    strategy: z
      .enum(STRATEGIES)
      .optional()
      .meta(
        described(
          '`least-loaded` (default): fewest active leases, then latency, then name. ' +
            '`spread`: fewest active leases, then longest unused.',
        ),
      ),
    sessionKey: z
      .string()
      .min(1)
      .max(SESSION_KEY_LENGTH_MAX)
      .optional()
      .meta(described('The same key gets the same proxy again while that one can be had.')),
    waitSeconds: z
      .number()
      .min(0)
      .max(WAIT_SECONDS_MAX)
      .optional()
      .meta(described('How long to queue for a proxy instead of being refused at once.')),
  })
  .meta({
    id: 'AcquireRequest',
    example: { selector: { region: 'eu' }, target: 'shop.example', ttlSeconds: 120 },
  });
export type AcquireRequest = z.infer<typeof acquireRequestSchema>;

/** `Idempotency-Key`. */
export const idempotencyKeySchema = z
  .string()
  .min(1)
  .max(IDEMPOTENCY_KEY_LENGTH_MAX)
  .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII');

export const renewRequestSchema = z
  .strictObject({ ttlSeconds: ttlSecondsSchema.optional() })
  .meta({ id: 'RenewRequest' });
export type RenewRequest = z.infer<typeof renewRequestSchema>;

export const reportRequestSchema = z
  .strictObject({
    result: z.enum(REPORT_RESULTS).meta(described('What the target did with the request.')),
    target: targetSchema.optional(),
    retryAfterSeconds: z
      .number()
      .int()
      .min(1)
      .optional()
      .meta(described('With `rate_limited`: how long the target asked to be left alone.')),
  })
  .meta({ id: 'ReportRequest', example: { result: 'rate_limited', retryAfterSeconds: 60 } });
export type ReportRequest = z.infer<typeof reportRequestSchema>;

const proxyProtocolSchema = z.enum(['http', 'https', 'socks5']);

export const leasedProxySchema = z.object({
  cluster: z.string(),
  namespace: z.string(),
  name: z.string(),
  host: z.string(),
  port: z.number().int(),
  protocol: proxyProtocolSchema,
  url: z.string().meta(described('What a crawler hands to its HTTP client, credentials included.')),
  attributes: z.record(z.string(), z.string()),
  egressIP: z.string().optional(),
  latencyMillis: z.number().int().optional(),
});

export const leaseSchema = z
  .object({
    leaseID: z.string().meta(described('Whoever knows it holds the lease: a secret.')),
    token: z
      .number()
      .int()
      .meta(described('Fencing token: that of a later lease of the same proxy is higher.')),
    proxy: leasedProxySchema,
    target: z.string().optional(),
    ttlSeconds: z.number().int(),
    expiresAt: z.iso.datetime(),
    expiresInMs: z.number().int(),
  })
  .meta({ id: 'Lease' });
export type Lease = z.infer<typeof leaseSchema>;

/** Proxies on a page of `GET /v1/proxies` when the caller names no limit, and at most. */
export const PAGE_LIMIT_DEFAULT = 100;
export const PAGE_LIMIT_MAX = 1_000;

export const listedProxySchema = z
  .object({
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
  })
  .meta({ id: 'ListedProxy' });
export type ListedProxy = z.infer<typeof listedProxySchema>;

export const proxyListSchema = z.object({
  proxies: z.array(listedProxySchema),
  count: z.number().int().meta(described('All that match, not this page.')),
  nextCursor: z
    .string()
    .optional()
    .meta(described('For the parameter `cursor`; absent on the last page.')),
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
  waiting: z.number().int().meta(described('Requests that queue for a proxy now.')),
  cooldowns: z.number().int(),
  /** What each crawler's token does; counts since the ledger's objects began to count. */
  clients: z.array(
    z.object({
      name: z
        .string()
        .meta(described('Of the token; `default` for one without a name, `anonymous` for none.')),
      activeLeases: z.number().int(),
      waiting: z.number().int(),
      outcomes: z
        .record(z.string(), z.number().int())
        .meta(described('Requests for a lease by how they ended: `granted` or the error code.')),
      reports: z.record(z.string(), z.number().int()).meta(described('Reports by result.')),
    }),
  ),
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
