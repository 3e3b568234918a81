/** The outermost layer: an id for each request, and a log line about how it ended. */
import type { MiddlewareHandler } from 'hono';
import { routePath } from 'hono/route';
import type { Clock } from '#shared/clock.ts';
import type { ErrorCode } from '#shared/wire/errors.ts';
import type { EdgeEnv } from './context.ts';
import { codeOf } from './errors.ts';
import type { Log } from './log.ts';

const REQUEST_ID_PATTERN = /^[A-Za-z0-9._:-]{1,128}$/;
/** Probes fetch these all the time; their successes say nothing. */
const QUIET_ROUTES = new Set(['/healthz', '/v1/echo']);

/** Which requests have a line in the log. */
export const LOGGED_REQUESTS = ['failures', 'all'] as const;
export type LoggedRequests = (typeof LOGGED_REQUESTS)[number];

/** The log names the route and not the path, for a lease's id is as good as the lease. */
export function traceRequests(
  log: Log,
  clock: Clock,
  logged: LoggedRequests,
): MiddlewareHandler<EdgeEnv> {
  return async (c, next) => {
    const startedMs = clock.monotonicMs();
    const given = c.req.header('x-request-id');
    const requestId =
      given !== undefined && REQUEST_ID_PATTERN.test(given) ? given : crypto.randomUUID();
    c.set('requestId', requestId);
    await next();
    const { status } = c.res;
    if (status < 400 && logged === 'failures') return;
    const route = routePath(c, -1);
    if (status < 400 && QUIET_ROUTES.has(route)) return;
    log(status >= 500 ? 'error' : 'info', 'request', {
      requestId,
      method: c.req.method,
      route,
      status,
      durationMs: Math.round(clock.monotonicMs() - startedMs),
      ...(c.error === undefined ? {} : failureOf(c.error)),
      ...(c.get('client') === undefined ? {} : { client: c.get('client') }),
    });
  };
}

function failureOf(error: Error): { error: ErrorCode; cause?: string } {
  const { cause } = error;
  return { error: codeOf(error), ...(cause instanceof Error ? { cause: cause.message } : {}) };
}
