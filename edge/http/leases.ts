/** `/v1/leases`: acquire, look at, renew, release and report on a lease. */
import type { OpenAPIHono } from '@hono/zod-openapi';
import type { z } from 'zod';
import {
  acquireRequestSchema,
  CRAWLER_BODY_BYTES_MAX,
  renewRequestSchema,
  reportRequestSchema,
} from '#shared/wire/lease.ts';
import { normalizeTarget } from '#shared/wire/target.ts';
import { answer, answerJson } from './answer.ts';
import { readJson } from './body.ts';
import type { EdgeContext, EdgeEnv, HttpDeps } from './context.ts';
import { ApiError, invalidField } from './errors.ts';
import { readIdempotency } from './idempotency.ts';
import { lateBody } from './late-answer.ts';
import { acquireRoute, lookRoute, releaseRoute, renewRoute, reportRoute } from './lease-routes.ts';
import { REASONS, toError } from './refusals.ts';
import { pathParam, serve } from './route.ts';

const BODY = { bytesMax: CRAWLER_BODY_BYTES_MAX, acceptsGzip: false };
/** An answer that took longer has waited in a queue. */
const PROMPT_MS = 50;

export function registerLeases(app: OpenAPIHono<EdgeEnv>, deps: HttpDeps): void {
  const { guards, ledger } = deps;

  serve(app, acquireRoute, (c) => acquire(c, deps));

  serve(app, lookRoute, async (c) => {
    const client = guards.crawler(c);
    const result = await ledger.lease(pathParam(c, 'id'), client);
    if (result.ok) return answerJson(c, 200, result.lease);
    // One that has ended is none to look at; only its holder, who renews it, is told more.
    const isEnded = result.code === 'lease_expired' || result.code === 'proxy_gone';
    throw isEnded ? new ApiError('unknown_lease', REASONS[result.code]) : toError(result);
  });

  serve(app, renewRoute, async (c) => {
    const client = guards.crawler(c);
    const { ttlSeconds } = await readJson(c, renewRequestSchema, BODY);
    const result = await ledger.renew(pathParam(c, 'id'), ttlSeconds, client);
    if (!result.ok) throw toError(result);
    return answerJson(c, 200, result.lease);
  });

  serve(app, releaseRoute, async (c) => {
    guards.crawler(c);
    const refusal = await ledger.release(pathParam(c, 'id'));
    if (refusal !== undefined) throw toError(refusal);
    return answer(c, 204, null);
  });

  serve(app, reportRoute, async (c) => {
    const client = guards.crawler(c);
    const report = withHost(await readJson(c, reportRequestSchema, BODY, codeOfReport));
    const result = await ledger.report(pathParam(c, 'id'), report, client);
    if (!result.ok) throw toError(result);
    return answer(c, 204, null);
  });
}

async function acquire(c: EdgeContext, deps: HttpDeps): Promise<Response> {
  const { guards, ledger, clock, waitUntil } = deps;
  const client = guards.crawler(c);
  const request = withHost(await readJson(c, acquireRequestSchema, BODY));
  const idempotency = await readIdempotency(c, client, request);
  const waits = request.waitSeconds !== undefined && request.waitSeconds > 0;
  const signal = waits ? c.req.raw.signal : undefined;
  const startedMs = clock.monotonicMs();
  const result = await ledger.acquire({ request, idempotency }, { client, signal, waitUntil });
  if (!result.ok) throw toError(result);
  if (signal === undefined || clock.monotonicMs() - startedMs < PROMPT_MS) {
    return answerJson(c, 201, result.lease);
  }
  const { body, sent } = lateBody(JSON.stringify(result.lease), clock, signal, result.giveBack);
  waitUntil(sent);
  return answerJson(c, 201, body);
}

function codeOfReport(error: z.core.$ZodError): 'invalid_result' | 'invalid_request' {
  const isResult = error.issues.some((issue) => issue.path[0] === 'result');
  return isResult ? 'invalid_result' : 'invalid_request';
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
