/** `GET /healthz`: the Worker runs and its settings are good. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import { answer } from './answer.ts';
import type { EdgeEnv } from './context.ts';
import { OPEN } from './definitions.ts';
import { refusals } from './refusal-schemas.ts';
import { serve } from './route.ts';

const route = createRoute({
  method: 'get',
  path: '/healthz',
  ...OPEN,
  operationId: 'health',
  summary: 'Whether the edge runs',
  responses: {
    200: { description: 'It does.', content: { 'text/plain': { schema: z.literal('ok') } } },
    ...refusals(),
  },
});

export function registerHealth(app: OpenAPIHono<EdgeEnv>): void {
  serve(app, route, (c) => answer(c, 200, 'ok', { 'content-type': 'text/plain; charset=UTF-8' }));
}
