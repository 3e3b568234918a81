/** `GET /healthz`: the Worker runs and its settings are good. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import type { EdgeEnv } from './context.ts';

export function registerHealth(app: OpenAPIHono<EdgeEnv>): void {
  const route = createRoute({
    method: 'get',
    path: '/healthz',
    responses: {
      200: { description: 'ok', content: { 'text/plain': { schema: z.literal('ok') } } },
    },
  });
  app.openapi(route, (c) => c.text('ok', 200));
}
