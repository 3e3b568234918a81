/** What is left when no route fits: another method of a known path, or an unknown path. */
import type { Hono } from 'hono';
import { answer } from './answer.ts';
import type { EdgeEnv } from './context.ts';
import { ApiError } from './errors.ts';

/** To be called after all routes are registered: reads from them which methods a path has. */
export function registerFallbacks(app: Hono<EdgeEnv>): void {
  const methodsByPath = new Map<string, Set<string>>();
  for (const { method, path } of app.routes) {
    if (method === 'ALL') continue;
    const methods = methodsByPath.get(path) ?? new Set(['OPTIONS']);
    methodsByPath.set(path, methods.add(method));
    if (method === 'GET') methods.add('HEAD');
  }
  for (const [path, methods] of methodsByPath) {
    const allow = [...methods].sort().join(', ');
    app.options(path, (c) => answer(c, 204, null, { allow }));
    app.all(path, () => {
      throw new ApiError('method_not_allowed', `this path takes ${allow}`, { headers: { allow } });
    });
  }
  app.notFound(() => {
    throw new ApiError('not_found', 'no such route');
  });
}
