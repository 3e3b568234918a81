/** The HTTP side of every server beside ours: two routes, one token, JSON in and out. */
import { Hono } from 'hono';
import { bearer, CRAWLER_TOKEN } from '#test/workerd/tokens.ts';
import { type Grant, leaseOf, type Wish } from './answer.ts';

export interface Ledger {
  /** undefined: nothing is free. */
  acquire(wish: Wish): Promise<Grant | undefined>;
  release(id: string): Promise<void>;
}

const AUTHORIZATION = bearer(CRAWLER_TOKEN).authorization;

export function baselineApp<Env>(
  ledgerOf: (env: Env) => Ledger,
  nowMs: () => number,
): Hono<{ Bindings: Env & object }> {
  const app = new Hono<{ Bindings: Env & object }>();
  app.use(async (c, next) => {
    if (c.req.header('authorization') !== AUTHORIZATION) return c.json({ error: 'no' }, 401);
    await next();
    return undefined;
  });
  app.post('/v1/leases', async (c) => {
    const wish = await c.req.json<Wish>();
    const grant = await ledgerOf(c.env).acquire(wish);
    if (grant === undefined) return c.json({ error: 'no_match' }, 409);
    return c.json(leaseOf(grant, wish, nowMs()), 201);
  });
  app.delete('/v1/leases/:id', async (c) => {
    await ledgerOf(c.env).release(c.req.param('id'));
    return c.body(null, 204);
  });
  return app;
}
