/** The one table of error codes of the edge's HTTP API and their statuses (contract §2). */
import { z } from 'zod';

export const ERROR_STATUS = {
  invalid_request: 400,
  invalid_result: 400,
  ttl_too_long: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  unknown_lease: 404,
  method_not_allowed: 405,
  no_match: 409,
  resync_required: 409,
  stale_term: 409,
  lease_expired: 410,
  proxy_gone: 410,
  payload_too_large: 413,
  unsupported_media_type: 415,
  idempotency_mismatch: 422,
  too_many_leases: 429,
  too_many_requests: 429,
  internal: 500,
  misconfigured: 500,
  auth_not_configured: 503,
  overloaded: 503,
  queue_full: 503,
  inventory_full: 507,
} as const;

export type ErrorCode = keyof typeof ERROR_STATUS;

/** Body of every refusal; some codes carry further fields, which `loose` keeps. */
export const errorBodySchema = z.looseObject({
  error: z.string(),
  message: z.string(),
  requestId: z.string(),
});

/** Further fields of `no_match`: why each of the considered proxies was not offered. */
export const noMatchSchema = z.object({
  considered: z.number().int(),
  atCapacity: z.number().int(),
  inCooldown: z.number().int(),
  unhealthy: z.number().int(),
  eligible: z.number().int(),
  retryAfterSeconds: z.number().int().optional().meta({
    description: 'Soonest time at which one of them can free up; absent when none will by itself.',
  }),
});
export type NoMatch = z.infer<typeof noMatchSchema>;
