/** `GET /v1/proxies`: what there is to lease, by attributes and health, in pages. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import type { ProxyQuery } from '#edge/object/rpc.ts';
import { labelKeySchema, labelValueSchema } from '#shared/crd/attributes.ts';
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, proxyListSchema } from '#shared/wire/lease.ts';
import type { Guards } from './auth.ts';
import type { EdgeEnv } from './context.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { invalidField, refusals } from './errors.ts';

const ATTRIBUTE_PREFIX = 'attr.';

/** Further parameters are `attr.<key>=<value>`; `parseSelector` refuses all others. */
const querySchema = z.object({
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
    const query = parseQuery(c.req.valid('query'), new URL(c.req.url).searchParams);
    const { proxies, count, next } = await c.get('ledger').proxies(query);
    const nextCursor = next === undefined ? {} : { nextCursor: encodeCursor(next) };
    return c.json({ proxies, count, ...nextCursor }, 200);
  });
}

function parseQuery(
  { healthy, limit, cursor }: z.output<typeof querySchema>,
  parameters: URLSearchParams,
): ProxyQuery {
  const after = cursor === undefined ? undefined : decodeCursor(cursor);
  if (cursor !== undefined && after === undefined) {
    throw invalidField('cursor', 'must be the nextCursor of an earlier answer');
  }
  return {
    selector: parseSelector(parameters),
    healthy: healthy === undefined ? undefined : healthy === 'true',
    limit: limit ?? PAGE_LIMIT_DEFAULT,
    after,
  };
}

function parseSelector(parameters: URLSearchParams): Record<string, string> {
  const attributes: [string, string][] = [];
  for (const [name, value] of parameters) {
    if (Object.hasOwn(querySchema.shape, name)) continue;
    if (!name.startsWith(ATTRIBUTE_PREFIX)) {
      throw invalidField(name, 'no such parameter; there are attr.<key>, healthy, limit, cursor');
    }
    if (parameters.getAll(name).length > 1) throw invalidField(name, 'may be given once');
    const key = name.slice(ATTRIBUTE_PREFIX.length);
    if (!labelKeySchema.safeParse(key).success || !labelValueSchema.safeParse(value).success) {
      throw invalidField(name, 'key and value must be those of a Kubernetes label');
    }
    attributes.push([key, value]);
  }
  return Object.fromEntries(attributes);
}
