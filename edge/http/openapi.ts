/** `GET /openapi.json`: the description of this API, made from the routes that serve it. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import { answerJson } from './answer.ts';
import type { EdgeEnv } from './context.ts';
import { json, OPEN } from './definitions.ts';
import { refusals } from './refusal-schemas.ts';
import { serve } from './route.ts';

const VERSION = '1.0.0';

const DOCUMENT = {
  openapi: '3.1.0',
  info: {
    title: 'Egress',
    version: VERSION,
    description:
      'Leases of egress proxies for crawlers. Every refusal is `{error, message, requestId}` with ' +
      'further fields by its code; the request id is also the header `x-request-id`.',
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  },
  tags: [
    { name: 'crawlers', description: 'With a token of `DISCOVERY_TOKEN`.' },
    { name: 'agents', description: 'With a token of `AGENT_TOKEN`.' },
    { name: 'open', description: 'Without credentials.' },
  ],
};

const route = createRoute({
  method: 'get',
  path: '/openapi.json',
  ...OPEN,
  operationId: 'describe',
  summary: 'This description',
  responses: {
    200: json('An OpenAPI 3.1 document.', z.looseObject({ openapi: z.string() })),
    ...refusals(),
  },
});

/** To be called after all other routes are registered. */
export function registerDescription(app: OpenAPIHono<EdgeEnv>): void {
  app.openAPIRegistry.registerComponent('securitySchemes', 'bearer', {
    type: 'http',
    scheme: 'bearer',
    description:
      'A secret of the crawler or of the agent; one never opens the routes of the other.',
  });
  let text: string | undefined;
  serve(app, route, (c) => {
    // Made when somebody asks for it first: most isolates never are.
    text ??= JSON.stringify(app.getOpenAPI31Document(DOCUMENT));
    return answerJson(c, 200, text);
  });
}
