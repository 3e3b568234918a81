/**
 * Who may call what. Crawlers and agents have secrets of their own, and neither opens the other's
 * routes. A token is compared with every configured one, each filled up to the same length, so
 * that the time taken tells nothing about how near a guess came.
 */
import type { EdgeContext } from './context.ts';
import { ApiError } from './errors.ts';
import type { NamedToken } from './tokens.ts';

export interface AuthSettings {
  readonly crawlerTokens: readonly NamedToken[];
  readonly agentTokens: readonly NamedToken[];
  /** Serve crawlers without a token while none is configured. */
  readonly allowAnonymous: boolean;
}

/** What a crawler is called whose token has no name, or who needs none. */
export interface ClientNames {
  readonly unnamed: string;
  readonly anonymous: string;
}

/** Each throws an `ApiError` when the caller may not go on. */
export interface Guards {
  /** Returns the name of the client. */
  crawler(c: EdgeContext): string;
  /** A named token opens the cluster of its name alone. */
  agent(c: EdgeContext, cluster: string): void;
}

export function createGuards(settings: AuthSettings, names: ClientNames): Guards {
  const crawlers = createKeyring(settings.crawlerTokens);
  const agents = createKeyring(settings.agentTokens);
  const isOpen = settings.allowAnonymous && settings.crawlerTokens.length === 0;
  return {
    crawler(c) {
      const client = isOpen
        ? names.anonymous
        : (authenticate(c, crawlers, 'DISCOVERY_TOKEN').name ?? names.unnamed);
      c.set('client', client);
      return client;
    },
    agent(c, cluster) {
      const { name } = authenticate(c, agents, 'AGENT_TOKEN');
      c.set('client', name);
      if (name !== undefined && name !== cluster) {
        throw new ApiError('forbidden', 'this token speaks for another cluster');
      }
    },
  };
}

function authenticate(c: EdgeContext, keyring: Keyring, secretName: string): NamedToken {
  if (keyring.isEmpty) {
    throw new ApiError('auth_not_configured', `the edge has no ${secretName} configured`);
  }
  const [, token] = /^Bearer +(\S+) *$/i.exec(c.req.header('authorization') ?? '') ?? [];
  if (token === undefined) {
    throw unauthorized('send the header "Authorization: Bearer <token>"', 'Bearer realm="egress"');
  }
  const owner = keyring.find(token);
  if (owner !== undefined) return owner;
  throw unauthorized('the token is not known here', 'Bearer realm="egress", error="invalid_token"');
}

function unauthorized(message: string, challenge: string): ApiError {
  return new ApiError('unauthorized', message, { headers: { 'www-authenticate': challenge } });
}

interface Keyring {
  readonly isEmpty: boolean;
  /** The configured token that equals `token`. */
  find(token: string): NamedToken | undefined;
}

/** Bytes that the length of a token takes in front of it. */
const LENGTH_BYTES = 4;

function createKeyring(tokens: readonly NamedToken[]): Keyring {
  const encoder = new TextEncoder();
  const known = tokens.map(({ token }) => encoder.encode(token));
  const width = LENGTH_BYTES + Math.max(0, ...known.map((bytes) => bytes.length));
  const padded = known.map((bytes) => {
    const block = new Uint8Array(width);
    fill(block, bytes, bytes.length);
    return block;
  });
  // Used by one request at a time, as nothing here waits.
  const shown = new Uint8Array(width);
  return {
    isEmpty: tokens.length === 0,
    find(token) {
      const bytes = encoder.encode(token);
      // What is longer than every token is cut off, and differs by its length.
      fill(shown, bytes.subarray(0, width - LENGTH_BYTES), bytes.length);
      let owner: NamedToken | undefined;
      for (const [index, block] of padded.entries()) {
        if (crypto.subtle.timingSafeEqual(shown, block)) owner = tokens[index];
      }
      return owner;
    },
  };
}

function fill(block: Uint8Array, bytes: Uint8Array, length: number): void {
  block.fill(0);
  new DataView(block.buffer).setUint32(0, length);
  block.set(bytes, LENGTH_BYTES);
}
