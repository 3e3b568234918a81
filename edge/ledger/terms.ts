/** A request for a lease, with everything filled in that the crawler left out. */
import type { AcquireCall, Client } from './calls.ts';
import type { Rules } from './rules.ts';
import type { Wish } from './selection.ts';

export interface AcquireTerms extends AcquireCall {
  readonly client: Client;
  readonly wish: Wish;
  readonly ttlSeconds: number;
  /** The client's name and its session key. */
  readonly session: string | undefined;
}

export function termsOf(call: AcquireCall, client: Client, rules: Rules): AcquireTerms {
  const { selector = {}, target = null, strategy = 'least-loaded' } = call.request;
  return {
    ...call,
    client,
    wish: { selector, target, strategy },
    ttlSeconds: call.request.ttlSeconds ?? rules.defaultTtlSeconds,
    session: sessionOf(client.name, call.request.sessionKey),
  };
}

/** Sessions of one client are none of another's. */
export function sessionOf(client: string, sessionKey: string | undefined): string | undefined {
  return sessionKey === undefined ? undefined : `${client} ${sessionKey}`;
}
