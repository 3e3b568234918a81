/**
 * Redis with one script for each request. `free` holds the proxies with room, by leases and then by
 * latency; `expiries` the leases by their ends, which the next acquire clears away.
 */
import { type Callback, Redis, type Result } from 'ioredis';
import { systemClock as clock } from '#shared/clock.ts';
import { proxyFacts } from '../answer.ts';
import type { Ledger } from '../baseline-app.ts';
import { maxLeasesOf, USED_SHARE } from '../fleet.ts';

/** Of a score: a proxy's leases times this, plus its latency. */
const LEASE = 1_000_000;
const FILL_PROXIES = 1_000;

const GIVE_BACK = `
local function give_back(id)
  local key = 'lease:' .. id
  local proxy = redis.call('HGET', key, 'proxy')
  if not proxy then return end
  if not redis.call('ZSCORE', 'free', proxy) then
    redis.call('ZADD', 'free', redis.call('HGET', 'full', proxy), proxy)
  end
  redis.call('ZINCRBY', 'free', -${LEASE}, proxy)
  redis.call('DEL', key)
  redis.call('ZREM', 'expiries', id)
end`;

/** id, now, expiry, target; `full` holds the score at which a proxy has no more room. */
const ACQUIRE = `${GIVE_BACK}
local due = redis.call('ZRANGE', 'expiries', '-inf', ARGV[2], 'BYSCORE', 'LIMIT', 0, 10)
for _, id in ipairs(due) do give_back(id) end
local proxy = redis.call('ZRANGE', 'free', 0, 0)[1]
if not proxy then return nil end
local score = redis.call('ZINCRBY', 'free', ${LEASE}, proxy)
if tonumber(score) >= tonumber(redis.call('HGET', 'full', proxy)) then
  redis.call('ZREM', 'free', proxy)
end
local token = redis.call('INCR', 'token')
redis.call('HSET', 'lease:' .. ARGV[1], 'proxy', proxy, 'token', token, 'target', ARGV[4])
redis.call('ZADD', 'expiries', ARGV[3], ARGV[1])
return {token, redis.call('HGET', 'facts', proxy)}`;

const RELEASE = `${GIVE_BACK}
give_back(ARGV[1])`;

declare module 'ioredis' {
  interface RedisCommander<Context> {
    acquireLease(
      id: string,
      nowMs: number,
      expiresMs: number,
      target: string,
      callback?: Callback<[number, string] | null>,
    ): Result<[number, string] | null, Context>;
    releaseLease(id: string, callback?: Callback<null>): Result<null, Context>;
  }
}

export async function openRedis(proxies: number, socket: string): Promise<Ledger> {
  const redis = new Redis({
    path: socket,
    // Commands of one turn of the event loop travel together, and share one fsync.
    enableAutoPipelining: true,
    scripts: {
      acquireLease: { lua: ACQUIRE, numberOfKeys: 0 },
      releaseLease: { lua: RELEASE, numberOfKeys: 0 },
    },
  });
  for (let first = 0; first < proxies; first += FILL_PROXIES) {
    await fill(redis, first, Math.min(first + FILL_PROXIES, proxies), proxies);
  }
  return {
    async acquire({ ttlSeconds, target = '' }) {
      const id = crypto.randomUUID();
      const nowMs = clock.now();
      const taken = await redis.acquireLease(id, nowMs, nowMs + ttlSeconds * 1000, target);
      if (taken === null) return undefined;
      const [token, facts] = taken;
      return { id, token, proxy: JSON.parse(facts) };
    },
    async release(id) {
      await redis.releaseLease(id);
    },
  };
}

async function fill(redis: Redis, first: number, end: number, proxies: number): Promise<void> {
  const pipeline = redis.pipeline();
  for (let index = first; index < end; index++) {
    const facts = proxyFacts(index);
    const latency = facts.latencyMillis ?? 0;
    const held = index < proxies * USED_SHARE ? 1 : 0;
    const max = maxLeasesOf(index);
    pipeline.hset('facts', facts.name, JSON.stringify(facts));
    pipeline.hset('full', facts.name, max * LEASE + latency);
    if (held < max) pipeline.zadd('free', held * LEASE + latency, facts.name);
  }
  await pipeline.exec();
}
