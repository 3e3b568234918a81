/** The figures of a run: small times, so that all expires, rests and comes back many times. */

export const SETTINGS = {
  defaultTtlSeconds: 2,
  maxTtlSeconds: 10,
  cooldownSeconds: 2,
  maxCooldownSeconds: 8,
  /** Agents speak many times a second; nothing goes stale while the edge starts again. */
  agentStaleSeconds: 90,
} as const;

/** As the edge takes them. */
export const VARS: Readonly<Record<string, string>> = {
  DEFAULT_LEASE_TTL_SECONDS: String(SETTINGS.defaultTtlSeconds),
  MAX_LEASE_TTL_SECONDS: String(SETTINGS.maxTtlSeconds),
  COOLDOWN_SECONDS: String(SETTINGS.cooldownSeconds),
  MAX_COOLDOWN_SECONDS: String(SETTINGS.maxCooldownSeconds),
  AGENT_STALE_SECONDS: String(SETTINGS.agentStaleSeconds),
};

export const CLUSTERS = ['alpha', 'beta'] as const;
export const PROXIES_PER_CLUSTER = 20;
/** Fewer than proxies, so that some share one, also across clusters and shards. */
export const ADDRESSES = 26;
export const REGIONS = ['eu', 'us'] as const;
export const TIERS = ['a', 'b', 'c'] as const;

/** As crawlers write them: all that is one host must be one target. */
export const TARGETS = [
  'one.example',
  'https://ONE.example:8443/path?q=1',
  'two.example',
  'two.example.',
  'three.example',
] as const;
