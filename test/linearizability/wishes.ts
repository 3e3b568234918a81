/** What crawlers ask for, by chance. */
import type { Random } from '#shared/clock.ts';
import type { AcquireRequest, ReportRequest } from '#shared/wire/lease.ts';
import { between, pick } from '#test/integration/seed.ts';
import { REGIONS, TARGETS, TIERS } from './settings.ts';

const SESSIONS = 12;
/** Of requests; each that waits keeps its client from doing anything else. */
const WAITING = 0.05;
/** Of reports; with more of them, most of the fleet would rest all the time. */
const OFFENDING = 0.1;

export function wishOf(random: Random): AcquireRequest {
  const target = random() < 0.75 ? pick(random, TARGETS) : undefined;
  const selector = selectorOf(random);
  return {
    ...(random() < 0.9 ? { ttlSeconds: ttlOf(random) } : {}),
    ...(target === undefined ? {} : { target }),
    ...(selector === undefined ? {} : { selector }),
    ...(random() < 0.3 ? { strategy: 'spread' as const } : {}),
    ...(random() < 0.25 ? { sessionKey: `session ${between(random, 1, SESSIONS)}` } : {}),
    ...(random() < WAITING ? { waitSeconds: between(random, 1, 2) } : {}),
  };
}

/** Mostly short, so that expiry happens; some outlive a restart of the edge. */
export function ttlOf(random: Random): number {
  return random() < 0.85 ? between(random, 1, 3) : between(random, 6, 10);
}

export function reportOf(random: Random): ReportRequest {
  const target = random() < 0.3 ? pick(random, TARGETS) : undefined;
  const about = target === undefined ? {} : { target };
  if (random() >= OFFENDING) return { ...about, result: 'ok' };
  if (random() < 0.5) return { ...about, result: 'banned' };
  const retryAfter = random() < 0.5 ? { retryAfterSeconds: between(random, 1, 6) } : {};
  return { ...about, ...retryAfter, result: 'rate_limited' };
}

function selectorOf(random: Random): Record<string, string> | undefined {
  const roll = random();
  if (roll < 0.4) return undefined;
  if (roll < 0.41) return { region: 'nowhere' };
  const region = pick(random, REGIONS) ?? '';
  const tier = pick(random, TIERS) ?? '';
  if (roll < 0.7) return { region };
  return roll < 0.85 ? { tier } : { region, tier };
}
