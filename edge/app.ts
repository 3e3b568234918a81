/** The HTTP application: the order of its layers, its routes, and what happens to errors. */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Clock } from '#shared/clock.ts';
import type { SettingsResult } from './env.ts';
import { registerAgents } from './http/agents.ts';
import { createGuards } from './http/auth.ts';
import type { EdgeEnv } from './http/context.ts';
import { registerEcho } from './http/echo.ts';
import { ApiError, errorHook, invalidRequest } from './http/errors.ts';
import { registerHealth } from './http/health.ts';
import { registerLeases } from './http/leases.ts';
import type { Log } from './http/log.ts';
import { registerFallbacks } from './http/methods.ts';
import { registerProxies } from './http/proxies.ts';
import { registerStats } from './http/stats.ts';
import { traceRequests } from './http/tracing.ts';
import type { LedgerRpc } from './object/rpc.ts';

export interface AppDeps {
  readonly settings: SettingsResult;
  /** A fresh stub of the ledger. */
  readonly ledger: () => LedgerRpc;
  readonly log: Log;
  readonly clock: Clock;
}

/** With bad settings every request is answered 500: a half-configured edge serves nobody. */
export function createApp({ settings, ledger, log, clock }: AppDeps): OpenAPIHono<EdgeEnv> {
  const app = new OpenAPIHono<EdgeEnv>({
    defaultHook: (result) => {
      if (!result.success) throw invalidRequest(result.error);
    },
  });
  app.onError(errorHook(log));
  app.use(traceRequests(log, clock));
  if (!settings.ok) {
    log('error', 'bad settings: every request is refused', { problems: settings.problems });
    app.use(() => {
      throw new ApiError(
        'misconfigured',
        'the settings of the edge are faulty; its log names them',
      );
    });
    return app;
  }
  const { allowAnonymous, crawlerTokens } = settings.settings;
  if (allowAnonymous) {
    const effect = crawlerTokens.length === 0 ? 'ANYBODY CAN LEASE PROXIES HERE' : 'no effect';
    log('warn', 'ALLOW_ANONYMOUS is "true"', { effect });
  }
  app.use(async (c, next) => {
    c.set('ledger', ledger());
    await next();
  });
  const guards = createGuards(settings.settings);
  registerHealth(app);
  registerEcho(app);
  registerProxies(app, guards);
  registerLeases(app, guards);
  registerStats(app, guards);
  registerAgents(app, guards);
  registerFallbacks(app);
  return app;
}
