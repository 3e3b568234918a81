/**
 * The figures that the ledger works by, from the edge's settings (`vars` of `wrangler.toml`).
 * Settings are texts; a missing one takes its default, a bad one is named.
 */
import { z } from 'zod';

/** A year: longer times are mistakes, and dates past it would leave the range of a Date. */
const SECONDS_MAX = 365 * 24 * 60 * 60;

const seconds = (defaultSeconds: number) =>
  z
    .string()
    .regex(/^[1-9]\d{0,8}$/, 'must be a whole number of seconds, at least 1')
    .transform(Number)
    .refine((value) => value <= SECONDS_MAX, `must be at most ${SECONDS_MAX}`)
    .default(defaultSeconds);

/** Settings by their names in `wrangler.toml`. */
export const rulesSchema = z
  .object({
    DEFAULT_LEASE_TTL_SECONDS: seconds(300),
    MAX_LEASE_TTL_SECONDS: seconds(3600),
    COOLDOWN_SECONDS: seconds(300),
    MAX_COOLDOWN_SECONDS: seconds(86_400),
    AGENT_STALE_SECONDS: seconds(90),
  })
  .refine((vars) => vars.DEFAULT_LEASE_TTL_SECONDS <= vars.MAX_LEASE_TTL_SECONDS, {
    path: ['DEFAULT_LEASE_TTL_SECONDS'],
    message: 'must not be above MAX_LEASE_TTL_SECONDS',
  })
  .refine((vars) => vars.COOLDOWN_SECONDS <= vars.MAX_COOLDOWN_SECONDS, {
    path: ['COOLDOWN_SECONDS'],
    message: 'must not be above MAX_COOLDOWN_SECONDS',
  })
  .transform((vars) => ({
    defaultTtlSeconds: vars.DEFAULT_LEASE_TTL_SECONDS,
    maxTtlSeconds: vars.MAX_LEASE_TTL_SECONDS,
    cooldownMs: vars.COOLDOWN_SECONDS * 1000,
    maxCooldownMs: vars.MAX_COOLDOWN_SECONDS * 1000,
    agentStaleMs: vars.AGENT_STALE_SECONDS * 1000,
  }));

export type Rules = Readonly<z.output<typeof rulesSchema>>;
