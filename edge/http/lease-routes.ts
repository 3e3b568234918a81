/** The definitions of `/v1/leases` and what is below it. */
import { createRoute } from '@hono/zod-openapi';
import { z } from 'zod';
import {
  acquireRequestSchema,
  idempotencyKeySchema,
  leaseSchema,
  renewRequestSchema,
  reportRequestSchema,
} from '#shared/wire/lease.ts';
import { COUNTED_REFUSALS, CRAWLER, CRAWLER_REFUSALS, json, jsonBodyOf } from './definitions.ts';
import { IDEMPOTENCY_HEADER } from './idempotency.ts';
import { refusals } from './refusal-schemas.ts';

const BODY_REFUSALS = ['invalid_request', 'payload_too_large', 'unsupported_media_type'] as const;

const params = z.object({ id: z.string().meta({ description: 'The `leaseID`.' }) });

const headers = z.object({
  [IDEMPOTENCY_HEADER]: idempotencyKeySchema.optional().meta({
    description:
      'The same key and body gets the same lease again while it lives, so that a request whose ' +
      'answer was lost can be sent again. Printable ASCII.',
    example: '6f1c9c1e-2d0b-4c55-9d0b-0a4f1f3c7a11',
  }),
});

export const acquireRoute = createRoute({
  method: 'post',
  path: '/v1/leases',
  ...CRAWLER,
  operationId: 'acquireLease',
  summary: 'Lease a proxy',
  description: 'Grants the best proxy that matches and can be had now, or waits for one.',
  request: { headers, body: jsonBodyOf(acquireRequestSchema) },
  responses: {
    201: json('A lease of the best proxy that matches.', leaseSchema),
    ...refusals(
      'no_match',
      'ttl_too_long',
      'idempotency_mismatch',
      'too_many_leases',
      'queue_full',
      ...BODY_REFUSALS,
      ...COUNTED_REFUSALS,
    ),
  },
});

export const lookRoute = createRoute({
  method: 'get',
  path: '/v1/leases/{id}',
  ...CRAWLER,
  operationId: 'getLease',
  summary: 'Look at a lease',
  request: { params },
  responses: {
    200: json('The lease, which is live.', leaseSchema),
    ...refusals('unknown_lease', ...COUNTED_REFUSALS),
  },
});

export const renewRoute = createRoute({
  method: 'post',
  path: '/v1/leases/{id}/renew',
  ...CRAWLER,
  operationId: 'renewLease',
  summary: 'Renew a lease',
  description: 'The lease lives for `ttlSeconds` from now, be that later or earlier than it was.',
  request: { params, body: jsonBodyOf(renewRequestSchema) },
  responses: {
    200: json('The lease as it is now.', leaseSchema),
    ...refusals(
      'unknown_lease',
      'lease_expired',
      'proxy_gone',
      'ttl_too_long',
      ...BODY_REFUSALS,
      ...COUNTED_REFUSALS,
    ),
  },
});

export const releaseRoute = createRoute({
  method: 'delete',
  path: '/v1/leases/{id}',
  ...CRAWLER,
  operationId: 'releaseLease',
  summary: 'Release a lease',
  description: 'One that is not known has ended already.',
  request: { params },
  responses: {
    204: { description: 'The lease is over, whatever it was before.' },
    ...refusals(...CRAWLER_REFUSALS),
  },
});

export const reportRoute = createRoute({
  method: 'post',
  path: '/v1/leases/{id}/report',
  ...CRAWLER,
  operationId: 'reportOnLease',
  summary: 'Report what a target did',
  description:
    '`rate_limited` and `banned` let the egress address of the lease rest for this target; a ' +
    'lease that has expired still takes reports for `COOLDOWN_SECONDS`.',
  request: { params, body: jsonBodyOf(reportRequestSchema) },
  responses: {
    204: { description: 'Noted.' },
    ...refusals('unknown_lease', 'invalid_result', ...BODY_REFUSALS, ...COUNTED_REFUSALS),
  },
});
