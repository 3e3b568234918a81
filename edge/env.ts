/** The bindings and settings of `wrangler.toml`, checked once per isolate. */
import { z } from 'zod';
import type { AuthSettings } from './http/auth.ts';
import { type NamedToken, parseTokens } from './http/tokens.ts';
import { LOGGED_REQUESTS, type LoggedRequests } from './http/tracing.ts';
import { rulesSchema } from './ledger/rules.ts';
import { SHARDS_MAX } from './ledger/shards.ts';
import type { LedgerNamespace } from './object/rpc.ts';
import {
  ANONYMOUS_CLIENT,
  type ClientLimits,
  DEFAULT_CLIENT,
  parseClientLimits,
  strayLine,
} from './router/limits.ts';

export interface Bindings {
  readonly LEDGER: LedgerNamespace;
}

export interface EdgeSettings extends AuthSettings {
  /** Number of objects that the fleet is divided among. */
  readonly shards: number;
  readonly clientLimits: ClientLimits;
  readonly logged: LoggedRequests;
}

export type SettingsResult =
  | { readonly ok: true; readonly settings: EdgeSettings }
  /** One line per fault; each names its setting and never shows a secret. */
  | { readonly ok: false; readonly problems: readonly string[] };

const tokens = (reserved: readonly string[]) =>
  z
    .string()
    .default('')
    .transform((text, ctx): readonly NamedToken[] => {
      const parsed = parseTokens(text, reserved);
      if (parsed.ok) return parsed.tokens;
      ctx.addIssue(parsed.problem);
      return z.NEVER;
    });

const clientLimits = z
  .string()
  .default('')
  .transform((text, ctx): ClientLimits => {
    const parsed = parseClientLimits(text);
    if (parsed.ok) return parsed.limits;
    ctx.addIssue(parsed.problem);
    return z.NEVER;
  });

const shards = z
  .string()
  .regex(/^[1-9]\d?$/, `must be a whole number, 1 to ${SHARDS_MAX}`)
  .transform(Number)
  .refine((count) => count <= SHARDS_MAX, `must be at most ${SHARDS_MAX}`)
  .default(1);

const accessSchema = z
  .object({
    DISCOVERY_TOKEN: tokens([DEFAULT_CLIENT, ANONYMOUS_CLIENT]),
    AGENT_TOKEN: tokens([]),
    ALLOW_ANONYMOUS: z.enum(['true', 'false']).default('false'),
    LEASE_SHARDS: shards,
    CLIENT_LIMITS: clientLimits,
    LOG_REQUESTS: z.enum(LOGGED_REQUESTS).default('failures'),
  })
  .refine(({ DISCOVERY_TOKEN, AGENT_TOKEN }) => !sharesToken(DISCOVERY_TOKEN, AGENT_TOKEN), {
    path: ['AGENT_TOKEN'],
    message: 'must not contain a token of DISCOVERY_TOKEN',
  })
  .superRefine((vars, ctx) => {
    const line = strayLine(vars.CLIENT_LIMITS, clientsOf(vars));
    if (line === undefined) return;
    const message = `line ${line} names no token of DISCOVERY_TOKEN`;
    ctx.addIssue({ code: 'custom', path: ['CLIENT_LIMITS'], message });
  })
  .transform((vars) => ({
    crawlerTokens: vars.DISCOVERY_TOKEN,
    agentTokens: vars.AGENT_TOKEN,
    allowAnonymous: vars.ALLOW_ANONYMOUS === 'true',
    shards: vars.LEASE_SHARDS,
    clientLimits: vars.CLIENT_LIMITS,
    logged: vars.LOG_REQUESTS,
  }));

/** Reads the settings; the ledger's figures are checked here too, before its object starts. */
export function readSettings(env: unknown): SettingsResult {
  const access = accessSchema.safeParse(env);
  const rules = rulesSchema.safeParse(env);
  if (access.success && rules.success) return { ok: true, settings: access.data };
  const issues = [...(access.error?.issues ?? []), ...(rules.error?.issues ?? [])];
  return {
    ok: false,
    problems: issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`),
  };
}

/** Names of all crawlers that can get in. */
function clientsOf(vars: {
  readonly DISCOVERY_TOKEN: readonly NamedToken[];
  readonly ALLOW_ANONYMOUS: 'true' | 'false';
}): string[] {
  const named = vars.DISCOVERY_TOKEN.map(({ name }) => name ?? DEFAULT_CLIENT);
  const isOpen = named.length === 0 && vars.ALLOW_ANONYMOUS === 'true';
  return isOpen ? [ANONYMOUS_CLIENT] : named;
}

function sharesToken(some: readonly NamedToken[], others: readonly NamedToken[]): boolean {
  const known = new Set(some.map(({ token }) => token));
  return others.some(({ token }) => known.has(token));
}
