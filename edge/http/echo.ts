/** `GET /v1/echo`: tells callers how the world sees them; probes learn egress addresses by it. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import { echoSchema } from '#shared/wire/lease.ts';
import type { EdgeEnv } from './context.ts';

/** What the platform knows of the caller's network; elsewhere nothing is known. */
const networkSchema = z.object({
  country: z.string().nullable().catch(null).default(null),
  asn: z.number().int().nullable().catch(null).default(null),
  colo: z.string().nullable().catch(null).default(null),
});

export function registerEcho(app: OpenAPIHono<EdgeEnv>): void {
  const route = createRoute({
    method: 'get',
    path: '/v1/echo',
    responses: {
      200: {
        description: "The caller's address, country, network and the data centre that answered.",
        content: { 'application/json': { schema: echoSchema } },
      },
    },
  });
  app.openapi(route, (c) => {
    const ip = c.req.header('cf-connecting-ip') ?? '';
    return c.json({ ip, ...networkSchema.parse(c.req.raw.cf ?? {}) }, 200);
  });
}
