/** `GET /v1/proxies`: what there is to lease, by attributes and health, in pages. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import type { ProxyQuery } from '#edge/object/rpc.ts';
import { labelKeySchema, labelValueSchema } from '#shared/crd/attributes.ts';
import { PAGE_LIMIT_DEFAULT, PAGE_LIMIT_MAX, proxyListSchema } from '#shared/wire/lease.ts';
import { answerJson } from './answer.ts';
import type { EdgeEnv, HttpDeps } from './context.ts';
import { decodeCursor, encodeCursor } from './cursor.ts';
import { COUNTED_REFUSALS, CRAWLER, json } from './definitions.ts';
import { invalidField, invalidRequest } from './errors.ts';
import { refusals } from './refusal-schemas.ts';
import { toError } from './refusals.ts';
import { serve } from './route.ts';

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

const route = createRoute({
  method: 'get',
  path: '/v1/proxies',
  ...CRAWLER,
  operationId: 'listProxies',
  summary: 'List the proxies',
  description:
    'In pages, without credentials. Further parameters `attr.<key>=<value>` ask for attributes ' +
    'that a proxy must have.',
  request: { query: querySchema },
  responses: {
    200: json('The proxies that match, by cluster, namespace and name.', proxyListSchema),
    ...refusals('invalid_request', ...COUNTED_REFUSALS),
  },
});

export function registerProxies(app: OpenAPIHono<EdgeEnv>, { guards, ledger }: HttpDeps): void {
  serve(app, route, async (c) => {
    const client = guards.crawler(c);
    const result = await ledger.proxies(readQuery(new URL(c.req.url).searchParams), client);
    if (!result.ok) throw toError(result);
    const { proxies, count, next } = result.value;
    const nextCursor = next === undefined ? {} : { nextCursor: encodeCursor(next) };
    return answerJson(c, 200, { proxies, count, ...nextCursor });
  });
}

function readQuery(parameters: URLSearchParams): ProxyQuery {
  const fixed = Object.keys(querySchema.shape).map((name) => [name, single(parameters, name)]);
  const parsed = querySchema.safeParse(Object.fromEntries(fixed));
  if (!parsed.success) throw invalidRequest(parsed.error);
  return parseQuery(parsed.data, parameters);
}

/** The one value of a parameter; what is given twice is no text, and refused as such. */
function single(parameters: URLSearchParams, name: string): string | string[] | undefined {
  const values = parameters.getAll(name);
  return values.length > 1 ? values : values[0];
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
