/** `/v1/leases`: acquire, look at, renew, release and report on a lease. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import type { AcquireResult, RenewResult, ReportResult } from '#edge/object/rpc.ts';
import {
  acquireRequestSchema,
  CRAWLER_BODY_BYTES_MAX,
  leaseSchema,
  renewRequestSchema,
  reportRequestSchema,
} from '#shared/wire/lease.ts';
import { normalizeTarget } from '#shared/wire/target.ts';
import type { Guards } from './auth.ts';
import { jsonBody } from './body.ts';
import type { EdgeEnv } from './context.ts';
import { ApiError, invalidField, invalidRequest, overloaded, refusals } from './errors.ts';

const BODY_REFUSALS = ['invalid_request', 'payload_too_large', 'unsupported_media_type'] as const;
const AUTH_REFUSALS = ['unauthorized', 'auth_not_configured', 'overloaded'] as const;

const params = z.object({ id: z.string() });
const leaseAnswer = (description: string) => ({
  description,
  content: { 'application/json': { schema: leaseSchema } },
});
const json = <Schema extends z.ZodType>(schema: Schema) => ({
  required: true,
  content: { 'application/json': { schema } },
});

export function registerLeases(app: OpenAPIHono<EdgeEnv>, guards: Guards): void {
  const body = jsonBody({ bytesMax: CRAWLER_BODY_BYTES_MAX, acceptsGzip: false });
  const routes = defineRoutes(guards, body);

  app.openapi(routes.acquire, async (c) => {
    const result = await c.get('ledger').acquire(withHost(c.req.valid('json')));
    if (!result.ok) throw refusalOf(result);
    return c.json(result.lease, 201);
  });

  app.openapi(routes.get, async (c) => {
    const result = await c.get('ledger').lease(c.req.valid('param').id);
    if (!result.ok) throw new ApiError('unknown_lease', REASONS[result.code]);
    return c.json(result.lease, 200);
  });

  app.openapi(routes.renew, async (c) => {
    const { ttlSeconds } = c.req.valid('json');
    const result = await c.get('ledger').renew(c.req.valid('param').id, ttlSeconds);
    if (!result.ok) throw refusalOf(result);
    return c.json(result.lease, 200);
  });

  app.openapi(routes.release, async (c) => {
    await c.get('ledger').release(c.req.valid('param').id);
    return c.body(null, 204);
  });

  app.openapi(
    routes.report,
    async (c) => {
      const report = withHost(c.req.valid('json'));
      const result = await c.get('ledger').report(c.req.valid('param').id, report);
      if (!result.ok) throw refusalOf(result);
      return c.body(null, 204);
    },
    (result) => {
      if (result.success) return;
      const isResult = result.error.issues.some((issue) => issue.path[0] === 'result');
      throw invalidRequest(result.error, isResult ? 'invalid_result' : 'invalid_request');
    },
  );
}

function defineRoutes({ crawler }: Guards, body: ReturnType<typeof jsonBody>) {
  return {
    acquire: createRoute({
      method: 'post',
      path: '/v1/leases',
      middleware: [crawler, body],
      request: { body: json(acquireRequestSchema) },
      responses: {
        201: leaseAnswer('A lease of the best proxy that matches.'),
        ...refusals('no_match', 'ttl_too_long', ...BODY_REFUSALS, ...AUTH_REFUSALS),
      },
    }),
    get: createRoute({
      method: 'get',
      path: '/v1/leases/{id}',
      middleware: [crawler],
      request: { params },
      responses: {
        200: leaseAnswer('The lease, which is live.'),
        ...refusals('unknown_lease', ...AUTH_REFUSALS),
      },
    }),
    renew: createRoute({
      method: 'post',
      path: '/v1/leases/{id}/renew',
      middleware: [crawler, body],
      request: { params, body: json(renewRequestSchema) },
      responses: {
        200: leaseAnswer('The lease, which lives for `ttlSeconds` from now.'),
        ...refusals('unknown_lease', 'lease_expired', 'proxy_gone'),
        ...refusals(...BODY_REFUSALS, 'ttl_too_long', ...AUTH_REFUSALS),
      },
    }),
    release: createRoute({
      method: 'delete',
      path: '/v1/leases/{id}',
      middleware: [crawler],
      request: { params },
      responses: {
        204: { description: 'The lease is over, whatever it was before.' },
        ...refusals(...AUTH_REFUSALS),
      },
    }),
    report: createRoute({
      method: 'post',
      path: '/v1/leases/{id}/report',
      middleware: [crawler, body],
      request: { params, body: json(reportRequestSchema) },
      responses: {
        204: { description: 'Noted.' },
        ...refusals('unknown_lease', 'invalid_result', ...BODY_REFUSALS, ...AUTH_REFUSALS),
      },
    }),
  };
}

const REASONS = {
  unknown_lease: 'no such lease; it was released, or ended a while ago',
  lease_expired: 'the lease has expired; acquire a new one',
  proxy_gone: 'the proxy of the lease was removed or replaced; acquire a new lease',
} as const;

type Refusal = Extract<AcquireResult | RenewResult | ReportResult, { ok: false }>;

function refusalOf(refusal: Refusal): ApiError {
  switch (refusal.code) {
    case 'no_match':
      return noMatch(refusal);
    case 'ttl_too_long': {
      const { maxTtlSeconds } = refusal;
      return new ApiError('ttl_too_long', `ttlSeconds: must be at most ${maxTtlSeconds}`, {
        fields: { field: 'ttlSeconds', maxTtlSeconds },
      });
    }
    case 'overloaded':
      return overloaded(`the ledger is full: ${refusal.reason}`);
    default:
      return new ApiError(refusal.code, REASONS[refusal.code]);
  }
}

function noMatch({ noMatch, withheld }: Extract<Refusal, { code: 'no_match' }>): ApiError {
  const { considered, atCapacity, inCooldown, unhealthy, retryAfterSeconds } = noMatch;
  const counts = [
    `${considered} considered`,
    `${atCapacity} at capacity`,
    `${inCooldown} in cooldown`,
    `${unhealthy} unhealthy`,
    ...(withheld > 0 ? [`${withheld} more cordoned or draining`] : []),
  ];
  return new ApiError('no_match', `no proxy is free: ${counts.join(', ')}`, {
    fields: noMatch,
    headers: retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) },
  });
}

/** The request with its target, if it names one, reduced to a host name. */
function withHost<Request extends { readonly target?: string | undefined }>(request: Request) {
  const { target, ...rest } = request;
  return target === undefined ? rest : { ...rest, target: toTarget(target) };
}

function toTarget(target: string): string {
  const host = normalizeTarget(target);
  if (host === undefined) {
    throw invalidField(
      'target',
      'must be a host name or a URL with one, of at most 253 characters',
    );
  }
  return host;
}
