/** How refusals look, for the description of the API. */
import { z } from 'zod';
import {
  ERROR_STATUS,
  type ErrorCode,
  errorBodySchema,
  noMatchSchema,
} from '#shared/wire/errors.ts';

const field = z
  .string()
  .meta({ description: 'What is at fault: a field, a parameter or a header.' });
const retryAfterSeconds = z
  .number()
  .int()
  .min(1)
  .meta({ description: 'Seconds after which to try again; also in the header `Retry-After`.' });
const later = { retryAfterSeconds };
const LATER_HEADERS = z.object({ 'Retry-After': z.string().optional() });

/** Further fields of refusals by code; others have none. */
const FIELDS: Readonly<Partial<Record<ErrorCode, z.ZodRawShape>>> = {
  invalid_request: { field },
  invalid_result: { field },
  ttl_too_long: { field, maxTtlSeconds: z.number().int() },
  no_match: noMatchSchema.shape,
  stale_term: { term: z.number().int().meta({ description: 'Of the leader that took over.' }) },
  payload_too_large: { maxBytes: z.number().int() },
  too_many_leases: later,
  too_many_requests: later,
  overloaded: later,
  queue_full: later,
};

const SENSE: Readonly<Record<ErrorCode, string>> = {
  invalid_request: 'something in the request is at fault',
  invalid_result: 'the result of a report is none of those that there are',
  ttl_too_long: 'more than `MAX_LEASE_TTL_SECONDS`',
  unauthorized: 'no token, or one that is not known',
  forbidden: 'the token speaks for another cluster',
  not_found: 'no such route',
  unknown_lease: 'no such lease, or it ended a while ago',
  method_not_allowed: 'the header `Allow` names the methods',
  no_match: 'no proxy can be had now, and why',
  resync_required: 'the edge needs a full sync',
  stale_term: 'another leader took over',
  lease_expired: 'its time is over',
  proxy_gone: 'its proxy was removed or replaced',
  payload_too_large: 'the body is too large',
  unsupported_media_type: 'the body is not plain JSON',
  idempotency_mismatch: 'the key was used with another body',
  too_many_leases: 'the token holds as many leases as it may',
  too_many_requests: 'the token sends more requests than it may',
  internal: 'a fault of the edge',
  misconfigured: 'the settings of the edge are faulty',
  auth_not_configured: 'the edge has no token for this route',
  overloaded: 'the ledger is busy',
  queue_full: 'too many requests wait already',
  inventory_full: 'the ledger has no more room for proxies',
};

/** Every answer may be one of these. */
const ALWAYS = ['internal', 'misconfigured'] as const;

/** The refusals of a route, by status. */
export function refusals(...codes: ErrorCode[]) {
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of [...codes, ...ALWAYS]) {
    const status = ERROR_STATUS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [
      status,
      {
        description: names.map((name) => `\`${name}\`: ${SENSE[name]}`).join('; '),
        content: { 'application/json': { schema: schemaOf(names) } },
        ...(names.some((name) => FIELDS[name] === later) ? { headers: LATER_HEADERS } : {}),
      },
    ]),
  );
}

function schemaOf(codes: readonly ErrorCode[]): z.ZodType {
  const [first, ...others] = codes.map((code) =>
    z.object({ ...errorBodySchema.shape, error: z.literal(code), ...FIELDS[code] }),
  );
  if (first === undefined) throw new Error('a status needs a code');
  return others.length === 0 ? first : z.union([first, ...others]);
}
