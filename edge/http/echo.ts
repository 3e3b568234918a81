/** `GET /v1/echo`: tells callers how the world sees them; probes learn egress addresses by it. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import { echoSchema } from '#shared/wire/lease.ts';
import type { EdgeEnv } from './context.ts';
import { json, OPEN } from './definitions.ts';
import { refusals } from './refusal-schemas.ts';
import { serve } from './route.ts';

/** What the platform knows of the caller's network; elsewhere nothing is known. */
const networkSchema = z.object({
  country: z.string().nullable().catch(null).default(null),
  asn: z.number().int().nullable().catch(null).default(null),
  colo: z.string().nullable().catch(null).default(null),
});

const route = createRoute({
  method: 'get',
  path: '/v1/echo',
  ...OPEN,
  operationId: 'echo',
  summary: 'How the world sees the caller',
  responses: {
    200: json('Address, country, network and the data centre that answered.', echoSchema),
    ...refusals(),
  },
});

export function registerEcho(app: OpenAPIHono<EdgeEnv>): void {
  serve(app, route, (c) => {
    const ip = c.req.header('cf-connecting-ip') ?? '';
    return c.json({ ip, ...networkSchema.parse(c.req.raw.cf ?? {}) }, 200);
  });
}
