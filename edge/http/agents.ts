/** `POST /v1/agents/{cluster}/sync`: the inventory that a cluster's agent pushes. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import {
  clusterNameSchema,
  SYNC_BODY_BYTES_MAX,
  syncRequestSchema,
  syncResponseSchema,
} from '#shared/wire/sync.ts';
import { answerJson } from './answer.ts';
import { readJson } from './body.ts';
import type { EdgeEnv, HttpDeps } from './context.ts';
import { AGENT, json, jsonBodyOf } from './definitions.ts';
import { invalidField } from './errors.ts';
import { refusals } from './refusal-schemas.ts';
import { toError } from './refusals.ts';
import { pathParam, serve } from './route.ts';

const BODY = { bytesMax: SYNC_BODY_BYTES_MAX, acceptsGzip: true };

const route = createRoute({
  method: 'post',
  path: '/v1/agents/{cluster}/sync',
  ...AGENT,
  operationId: 'sync',
  summary: 'Push the inventory of a cluster',
  description: 'For the agent in the cluster; the body may be compressed with gzip.',
  request: {
    params: z.object({ cluster: clusterNameSchema }),
    body: jsonBodyOf(syncRequestSchema),
  },
  responses: {
    200: json('Taken, with what the agent cannot know by itself.', syncResponseSchema),
    ...refusals(
      'invalid_request',
      'unauthorized',
      'forbidden',
      'stale_term',
      'resync_required',
      'payload_too_large',
      'unsupported_media_type',
      'inventory_full',
      'auth_not_configured',
      'overloaded',
    ),
  },
});

export function registerAgents(app: OpenAPIHono<EdgeEnv>, { guards, ledger }: HttpDeps): void {
  serve(app, route, async (c) => {
    const cluster = pathParam(c, 'cluster');
    guards.agent(c, cluster);
    requireName(cluster);
    const result = await ledger.sync(cluster, await readJson(c, syncRequestSchema, BODY));
    if (!result.ok) throw toError(result);
    return answerJson(c, 200, result.response);
  });
}

function requireName(cluster: string): void {
  const parsed = clusterNameSchema.safeParse(cluster);
  if (!parsed.success) throw invalidField('cluster', parsed.error.issues[0]?.message ?? 'invalid');
}
