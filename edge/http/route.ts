/**
 * A route: its definition, which describes it in `/openapi.json`, and its handler. The handlers
 * check who asks and what is asked by themselves, in that order.
 */
import type { createRoute, OpenAPIHono } from '@hono/zod-openapi';
import type { EdgeContext, EdgeEnv } from './context.ts';

export type Route = ReturnType<typeof createRoute>;

export function serve(
  app: OpenAPIHono<EdgeEnv>,
  route: Route,
  handler: (c: EdgeContext) => Response | Promise<Response>,
): void {
  app.openAPIRegistry.registerPath(route);
  app.on(route.method, route.getRoutingPath(), handler);
}

/** A parameter of the path. */
export function pathParam(c: EdgeContext, name: string): string {
  return c.req.param(name) ?? '';
}
