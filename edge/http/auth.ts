/**
 * Who may call what. Crawlers and agents have secrets of their own, and neither opens the other's
 * routes. A token is compared by its digest with every configured one, so that the time taken
 * tells nothing about how near a guess came.
 */
import type { Context, MiddlewareHandler } from 'hono';
import type { EdgeEnv } from './context.ts';
import { ApiError } from './errors.ts';
import type { NamedToken } from './tokens.ts';

export interface AuthSettings {
  readonly crawlerTokens: readonly NamedToken[];
  readonly agentTokens: readonly NamedToken[];
  /** Serve crawlers without a token while none is configured. */
  readonly allowAnonymous: boolean;
}

export interface Guards {
  readonly crawler: MiddlewareHandler<EdgeEnv>;
  /** For routes with a `cluster` in their path: a named token opens that cluster alone. */
  readonly agent: MiddlewareHandler<EdgeEnv>;
}

export function createGuards(settings: AuthSettings): Guards {
  const crawlers = createKeyring(settings.crawlerTokens);
  const agents = createKeyring(settings.agentTokens);
  return {
    crawler: async (c, next) => {
      const isOpen = settings.allowAnonymous && settings.crawlerTokens.length === 0;
      if (!isOpen) c.set('client', (await authenticate(c, crawlers, 'DISCOVERY_TOKEN')).name);
      await next();
    },
    agent: async (c, next) => {
      const { name } = await authenticate(c, agents, 'AGENT_TOKEN');
      c.set('client', name);
      if (name !== undefined && name !== c.req.param('cluster')) {
        throw new ApiError('forbidden', 'this token speaks for another cluster');
      }
      await next();
    },
  };
}

async function authenticate(
  c: Context<EdgeEnv>,
  keyring: Keyring,
  secretName: string,
): Promise<NamedToken> {
  if (keyring.isEmpty) {
    throw new ApiError('auth_not_configured', `the edge has no ${secretName} configured`);
  }
  const [, token] = /^Bearer +(\S+) *$/i.exec(c.req.header('authorization') ?? '') ?? [];
  if (token === undefined) {
    throw unauthorized('send the header "Authorization: Bearer <token>"', 'Bearer realm="egress"');
  }
  const owner = await keyring.find(token);
  if (owner !== undefined) return owner;
  throw unauthorized('the token is not known here', 'Bearer realm="egress", error="invalid_token"');
}

function unauthorized(message: string, challenge: string): ApiError {
  return new ApiError('unauthorized', message, { headers: { 'www-authenticate': challenge } });
}

interface Keyring {
  readonly isEmpty: boolean;
  /** The configured token that equals `token`. */
  find(token: string): Promise<NamedToken | undefined>;
}

function createKeyring(tokens: readonly NamedToken[]): Keyring {
  // Made by the first request that needs it. The digests are kept and not a promise of them: a
  // request of the Workers runtime must not wait for what belongs to another request.
  let digests: readonly ArrayBuffer[] | undefined;
  return {
    isEmpty: tokens.length === 0,
    async find(token) {
      digests ??= await Promise.all(tokens.map((known) => digest(known.token)));
      const shown = await digest(token);
      let owner: NamedToken | undefined;
      for (const [index, known] of digests.entries()) {
        if (crypto.subtle.timingSafeEqual(shown, known)) owner = tokens[index];
      }
      return owner;
    },
  };
}

function digest(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
}
