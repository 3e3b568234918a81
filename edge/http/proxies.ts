/** `GET /v1/proxies`: what there is to lease, by attributes and health, in pages. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import type { ProxyQuery } from '#edge/object/rpc.ts';
import { selectorSchema } from '#shared/crd/attributes.ts';
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, proxyListSchema } from '#shared/wire/lease.ts';
import type { Guards } from './auth.ts';
import type { EdgeEnv } from './context.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { invalidField, refusals } from './errors.ts';

const ATTRIBUTE_PREFIX = 'attr.';

/** Further parameters are `attr.<key>=<value>`; `parseQuery` refuses all others. */
const querySchema = z.looseObject({
  healthy: z.enum(['true', 'false']).optional(),
  limit: z
    .string()
    .regex(/^[1-9]\d{0,3}$/, 'must be a whole number, at least 1')
    .transform(Number)
    .refine((limit) => limit <= PAGE_LIMIT_MAX, `must be at most ${PAGE_LIMIT_MAX}`)
    .optional(),
  cursor: z.string().optional(),
});

export function registerProxies(app: OpenAPIHono<EdgeEnv>, guards: Guards): void {
  const route = createRoute({
    method: 'get',
    path: '/v1/proxies',
    middleware: [guards.crawler],
    request: { query: querySchema },
    responses: {
      200: {
        description: 'The proxies that match, without credentials.',
        content: { 'application/json': { schema: proxyListSchema } },
      },
      ...refusals('invalid_request', 'unauthorized', 'auth_not_configured', 'overloaded'),
    },
  });
  app.openapi(route, async (c) => {
    const query = parseQuery(c.req.valid('query'));
    const { proxies, count, next } = await c.get('ledger').proxies(query);
    const nextCursor = next === undefined ? {} : { nextCursor: encodeCursor(next) };
    return c.json({ proxies, count, ...nextCursor }, 200);
  });
}

function parseQuery(query: z.output<typeof querySchema>): ProxyQuery {
  const { healthy, limit, cursor, ...others } = query;
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  if (cursor !== undefined && after === undefined) {
    throw invalidField('cursor', 'must be the nextCursor of an earlier answer');
  }
  return {
    selector: parseSelector(others),
    healthy: healthy === undefined ? undefined : healthy === 'true',
    limit: limit ?? PAGE_LIMIT_DEFAULT,
    after,
  };
}

function parseSelector(parameters: Readonly<Record<string, unknown>>): Record<string, string> {
  const attributes: [string, string][] = [];
  for (const [name, value] of Object.entries(parameters)) {
    if (!name.startsWith(ATTRIBUTE_PREFIX)) {
      throw invalidField(name, 'no such parameter; there are attr.<key>, healthy, limit, cursor');
    }
    if (typeof value !== 'string') throw invalidField(name, 'may be given once');
    const pair: [string, string] = [name.slice(ATTRIBUTE_PREFIX.length), value];
    if (!selectorSchema.safeParse(Object.fromEntries([pair])).success) {
      throw invalidField(name, 'key and value must be those of a Kubernetes label');
    }
    attributes.push(pair);
  }
  return Object.fromEntries(attributes);
}
