/** `GET /v1/stats`: the figures of the whole ledger. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { statsSchema } from '#shared/wire/lease.ts';
import { answerJson } from './answer.ts';
import type { EdgeEnv, HttpDeps } from './context.ts';
import { COUNTED_REFUSALS, CRAWLER, json } from './definitions.ts';
import { refusals } from './refusal-schemas.ts';
import { toError } from './refusals.ts';
import { serve } from './route.ts';

const route = createRoute({
  method: 'get',
  path: '/v1/stats',
  ...CRAWLER,
  operationId: 'getStats',
  summary: 'Figures of the whole ledger',
  responses: {
    200: json('Proxies by state, leases, cooldowns, clients and agents.', statsSchema),
    ...refusals(...COUNTED_REFUSALS),
  },
});

export function registerStats(app: OpenAPIHono<EdgeEnv>, { guards, ledger }: HttpDeps): void {
  serve(app, route, async (c) => {
    const result = await ledger.stats(guards.crawler(c));
    if (!result.ok) throw toError(result);
    return answerJson(c, 200, result.value);
  });
}
