/** One request on its way through the handlers, and what the handlers work with. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock, Random } from '#shared/clock.ts';
import type { Verbs } from '../api/verbs/verbs.ts';
import type { ResourceRegistry } from '../registry/resource-registry.ts';
import type { Authorizer } from './authorizer.ts';
import type { User } from './users.ts';

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly user: User;
  /** Aborted when the client leaves or the server closes. */
  readonly signal: AbortSignal;
}

export interface HandlerDeps {
  readonly verbs: Verbs;
  readonly registry: ResourceRegistry;
  readonly authorizer: Authorizer;
  readonly clock: Clock;
  readonly random: Random;
  /** Where a pod's output is written; undefined while it has none. */
  readonly podLog: (namespace: string, name: string) => string | undefined;
}

/** A header of the request; empty when absent. */
export function header(exchange: Exchange, name: 'accept' | 'content-type' | 'user-agent'): string {
  return exchange.request.headers[name] ?? '';
}
