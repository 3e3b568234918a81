/** `GET /v1/stats`: the figures of the whole ledger. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { statsSchema } from '#shared/wire/lease.ts';
import type { Guards } from './auth.ts';
import type { EdgeEnv } from './context.ts';
import { refusals } from './errors.ts';

export function registerStats(app: OpenAPIHono<EdgeEnv>, guards: Guards): void {
  const route = createRoute({
    method: 'get',
    path: '/v1/stats',
    middleware: [guards.crawler],
    responses: {
      200: {
        description: 'Proxies by state, active leases, cooldowns, and the agents.',
        content: { 'application/json': { schema: statsSchema } },
      },
      ...refusals('unauthorized', 'auth_not_configured', 'overloaded'),
    },
  });
  app.openapi(route, async (c) => c.json(await c.get('ledger').stats(), 200));
}
