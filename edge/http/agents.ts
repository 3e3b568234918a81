/** `POST /v1/agents/{cluster}/sync`: the inventory that a cluster's agent pushes. */
import { createRoute, type OpenAPIHono } from '@hono/zod-openapi';
import { z } from 'zod';
import type { SyncResult } from '#edge/object/rpc.ts';
import {
  clusterNameSchema,
  SYNC_BODY_BYTES_MAX,
  syncRequestSchema,
  syncResponseSchema,
} from '#shared/wire/sync.ts';
import type { Guards } from './auth.ts';
import { jsonBody } from './body.ts';
import type { EdgeEnv } from './context.ts';
import { ApiError, refusals } from './errors.ts';

export function registerAgents(app: OpenAPIHono<EdgeEnv>, guards: Guards): void {
  const route = createRoute({
    method: 'post',
    path: '/v1/agents/{cluster}/sync',
    middleware: [guards.agent, jsonBody({ bytesMax: SYNC_BODY_BYTES_MAX, acceptsGzip: true })],
    request: {
      params: z.object({ cluster: clusterNameSchema }),
      body: { required: true, content: { 'application/json': { schema: syncRequestSchema } } },
    },
    responses: {
      200: {
        description: 'Taken, with what the agent cannot know by itself.',
        content: { 'application/json': { schema: syncResponseSchema } },
      },
      ...refusals('invalid_request', 'unauthorized', 'forbidden', 'stale_term', 'resync_required'),
      ...refusals('payload_too_large', 'unsupported_media_type', 'inventory_full'),
    },
  });
  app.openapi(route, async (c) => {
    const result = await c.get('ledger').sync(c.req.valid('param').cluster, c.req.valid('json'));
    if (!result.ok) throw refusalOf(result);
    return c.json(result.response, 200);
  });
}

function refusalOf(refusal: Extract<SyncResult, { ok: false }>): ApiError {
  switch (refusal.code) {
    case 'stale_term': {
      const { term } = refusal;
      return new ApiError('stale_term', `a newer leader took over, with term ${term}`, {
        fields: { term },
      });
    }
    case 'resync_required':
      return new ApiError('resync_required', `send a full sync: ${refusal.reason}`);
    case 'inventory_full':
      return new ApiError('inventory_full', `the ledger has no more room: ${refusal.reason}`);
  }
}
