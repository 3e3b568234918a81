/** The bindings and settings of `wrangler.toml`, checked once per isolate. */
import { z } from 'zod';
import type { AuthSettings } from './http/auth.ts';
import { type NamedToken, parseTokens } from './http/tokens.ts';
import { rulesSchema } from './ledger/rules.ts';
import type { LedgerObject } from './object/ledger-object.ts';

export interface Bindings {
  readonly LEDGER: DurableObjectNamespace<LedgerObject>;
}

export type SettingsResult =
  | { readonly ok: true; readonly settings: AuthSettings }
  /** One line per fault; each names its setting and never shows a secret. */
  | { readonly ok: false; readonly problems: readonly string[] };

const tokens = z
  .string()
  .default('')
  .transform((text, ctx): readonly NamedToken[] => {
    const parsed = parseTokens(text);
    if (parsed.ok) return parsed.tokens;
    ctx.addIssue(parsed.problem);
    return z.NEVER;
  });

const accessSchema = z
  .object({
    DISCOVERY_TOKEN: tokens,
    AGENT_TOKEN: tokens,
    ALLOW_ANONYMOUS: z.enum(['true', 'false']).default('false'),
    LEASE_SHARDS: z.literal('1', 'must be "1"').default('1'),
  })
  .refine(({ DISCOVERY_TOKEN, AGENT_TOKEN }) => !sharesToken(DISCOVERY_TOKEN, AGENT_TOKEN), {
    path: ['AGENT_TOKEN'],
    message: 'must not contain a token of DISCOVERY_TOKEN',
  })
  .transform((vars) => ({
    crawlerTokens: vars.DISCOVERY_TOKEN,
    agentTokens: vars.AGENT_TOKEN,
    allowAnonymous: vars.ALLOW_ANONYMOUS === 'true',
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

function sharesToken(some: readonly NamedToken[], others: readonly NamedToken[]): boolean {
  const known = new Set(some.map(({ token }) => token));
  return others.some(({ token }) => known.has(token));
}
