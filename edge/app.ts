/** The HTTP application: the order of its layers, its routes, and what happens to errors. */
import { OpenAPIHono } from '@hono/zod-openapi';
import type { Clock, Random } from '#shared/clock.ts';
import type { SettingsResult } from './env.ts';
import { registerAgents } from './http/agents.ts';
import { createGuards } from './http/auth.ts';
import type { EdgeEnv, HttpDeps } from './http/context.ts';
import { registerEcho } from './http/echo.ts';
import { ApiError, errorHook } from './http/errors.ts';
import { registerHealth } from './http/health.ts';
import { registerLeases } from './http/leases.ts';
import type { Log } from './http/log.ts';
import { registerFallbacks } from './http/methods.ts';
import { registerDescription } from './http/openapi.ts';
import { registerProxies } from './http/proxies.ts';
import { registerStats } from './http/stats.ts';
import { traceRequests } from './http/tracing.ts';
import type { LedgerRpc } from './object/rpc.ts';
import { createLedger } from './router/ledger.ts';
import { ANONYMOUS_CLIENT, DEFAULT_CLIENT } from './router/limits.ts';

export interface AppDeps {
  readonly settings: SettingsResult;
  /** A fresh stub of a shard's object. */
  readonly shard: (index: number) => LedgerRpc;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: Random;
  /** 128 bits that nobody can guess, as text without a dot. */
  readonly randomToken: () => string;
  /** Lets work of a request go on after its answer. */
  readonly waitUntil: (work: Promise<unknown>) => void;
}

/** With bad settings every request is answered 500: a half-configured edge serves nobody. */
export function createApp(deps: AppDeps): OpenAPIHono<EdgeEnv> {
  const { settings, log, clock } = deps;
  const app = new OpenAPIHono<EdgeEnv>();
  app.onError(errorHook(log));
  if (!settings.ok) {
    app.use(traceRequests(log, clock, 'failures'));
    log('error', 'bad settings: every request is refused', { problems: settings.problems });
    app.use(() => {
      throw new ApiError(
        'misconfigured',
        'the settings of the edge are faulty; its log names them',
      );
    });
    return app;
  }
  const { allowAnonymous, crawlerTokens, shards, clientLimits, logged } = settings.settings;
  app.use(traceRequests(log, clock, logged));
  if (allowAnonymous) {
    const effect = crawlerTokens.length === 0 ? 'ANYBODY CAN LEASE PROXIES HERE' : 'no effect';
    log('warn', 'ALLOW_ANONYMOUS is "true"', { effect });
  }
  const names = { unnamed: DEFAULT_CLIENT, anonymous: ANONYMOUS_CLIENT };
  const http: HttpDeps = {
    guards: createGuards(settings.settings, names),
    ledger: createLedger({ ...deps, shards, limits: clientLimits }),
    clock,
    waitUntil: (work) => deps.waitUntil(work.catch(logger(log))),
  };
  registerHealth(app);
  registerEcho(app);
  registerProxies(app, http);
  registerLeases(app, http);
  registerStats(app, http);
  registerAgents(app, http);
  registerDescription(app);
  registerFallbacks(app);
  return app;
}

/** For work that nobody waits for: its failure would be lost otherwise. */
function logger(log: Log): (error: unknown) => void {
  return (error) => {
    const cause = error instanceof Error ? error.message : String(error);
    log('error', 'work behind an answer failed', { cause });
  };
}
