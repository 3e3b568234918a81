/** `GET /v1/echo`: tells callers how the world sees them; probes learn egress addresses by it. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import { echoSchema } from '#shared/wire/lease.ts';
import { answerJson } from './answer.ts';
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

/**
 * The runtime by itself, without the platform around it, knows the connection: `192.0.2.1:1234`, or
 * `[2001:db8::1]:1234`.
 */
const connectionSchema = z
  .object({ clientIp: z.string() })
  .transform(({ clientIp }) => clientIp.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'))
  .catch('');

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
    const { cf } = c.req.raw;
    const ip = connectionSchema.parse(cf) || (c.req.header('cf-connecting-ip') ?? '');
    return answerJson(c, 200, { ip, ...networkSchema.parse(cf ?? {}) });
  });
}
