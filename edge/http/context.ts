/** What belongs to a request, and what the handlers of all requests share. */
import type { Context, Hono } from 'hono';
import type { Ledger } from '#edge/router/ledger.ts';
import type { Clock } from '#shared/clock.ts';
import type { Guards } from './auth.ts';

export interface EdgeEnv {
  Variables: {
    /** Taken over from the caller or made; also in the answer's headers and the log. */
    requestId: string;
    /** Name of the token that the caller showed, or what stands for it; for the log. */
    client: string | undefined;
  };
}

export type EdgeApp = Hono<EdgeEnv>;
export type EdgeContext = Context<EdgeEnv>;

export interface HttpDeps {
  readonly guards: Guards;
  readonly ledger: Ledger;
  readonly clock: Clock;
  /** Lets work go on that nobody waits for. */
  readonly waitUntil: (work: Promise<unknown>) => void;
}
