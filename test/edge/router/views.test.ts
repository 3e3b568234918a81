import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Position, ProxyPage } from '#edge/object/rpc.ts';
import type { ListedProxy, Stats } from '#shared/wire/lease.ts';
import { fakeLedger, TooManyRequests } from './fake-shards.ts';

const keyOf = ({ cluster, namespace, name, uid }: Position) =>
  [cluster, namespace, name, uid].join('\u0000');
const byKey = (a: Position, b: Position) => (keyOf(a) < keyOf(b) ? -1 : 1);

/** A page as a shard makes it, of all that it has. */
function pageOf(all: readonly Position[], limit: number, after: Position | undefined): ProxyPage {
  const sorted = [...all].sort(byKey);
  const behind = sorted.filter((one) => after === undefined || byKey(after, one) < 0);
  const taken = behind.filter((one) => after === undefined || keyOf(one) !== keyOf(after));
  const positions = taken.slice(0, limit);
  const last = positions.at(-1);
  const next = taken.length > limit && last !== undefined ? { next: last } : {};
  const proxies = positions.map(({ cluster, namespace, name, uid }): ListedProxy => {
    const rest = { port: 1, protocol: 'http', attributes: {}, healthy: true } as const;
    const counts = { activeLeases: 0, maxLeases: 1, leasable: true, draining: false };
    return { cluster, namespace, name, host: uid, ...rest, ...counts };
  });
  return { proxies, positions, count: all.length, ...next };
}

const part = fc.constantFrom('a', 'b', 'c');
const position = fc.record({
  cluster: part,
  namespace: part,
  name: part,
  uid: fc.integer({ min: 0, max: 50 }).map((number) => `u${number}`),
});
const fleets = fc
  .uniqueArray(position, { selector: keyOf, maxLength: 60 })
  .chain((all) => fc.tuple(fc.constant(all), fc.array(fc.nat(3), { minLength: 60 })));

describe('the list of proxies', () => {
  it('has every proxy once over its pages, in order, whatever shard it is in', async () => {
    await fc.assert(
      fc.asyncProperty(fleets, fc.integer({ min: 1, max: 7 }), async ([all, homes], limit) => {
        const { ledger } = fakeLedger(
          {
            proxies: ({ after }, shard) =>
              pageOf(
                all.filter((_, index) => homes[index] === shard),
                limit,
                after,
              ),
          },
          { shards: 4 },
        );
        const seen: string[] = [];
        let after: Position | undefined;
        do {
          const page = await ledger.proxies({ selector: {}, limit, after }, 'shop');
          if (!page.ok) throw new Error(page.code);
          expect(page.value.count).toBe(all.length);
          expect(page.value.proxies.length).toBeLessThanOrEqual(limit);
          seen.push(...page.value.positions.map(keyOf));
          expect(page.value.proxies.map(({ host }) => host)).toEqual(
            page.value.positions.map(({ uid }) => uid),
          );
          after = page.value.next;
        } while (after !== undefined);
        expect(seen).toEqual([...all].sort(byKey).map(keyOf));
      }),
    );
  });

  it('is refused when a shard refuses, for a part is not the whole', async () => {
    const { ledger } = fakeLedger(
      {
        proxies: (_, shard) => {
          if (shard === 1) throw new TooManyRequests(4);
          return pageOf([], 1, undefined);
        },
      },
      { shards: 2 },
    );
    const answer = await ledger.proxies({ selector: {}, limit: 1 }, 'shop');
    expect(answer).toMatchObject({ code: 'too_many_requests', retryAfterSeconds: 4 });
  });
});

describe('the stats', () => {
  const proxies = { total: 6, healthy: 1, unhealthy: 2, stale: 3, cordoned: 4, draining: 5 };
  const client = (name: string, outcomes: Record<string, number>) => ({
    name,
    activeLeases: 1,
    waiting: 2,
    outcomes,
    reports: { banned: 1 },
  });
  const agent = (cluster: string, count: number, lastSyncAgeSeconds: number) => ({
    cluster,
    term: 3,
    proxies: count,
    lastSyncAgeSeconds,
    stale: false,
  });

  it('are sums, with clients by name and the agents as shard 0 knows them', async () => {
    const byShard: Stats[] = [
      {
        proxies,
        leases: { active: 10 },
        waiting: 1,
        cooldowns: 2,
        clients: [client('shop', { granted: 1 })],
        agents: [agent('alpha', 4, 1), agent('beta', 1, 2)],
      },
      {
        proxies,
        leases: { active: 5 },
        waiting: 2,
        cooldowns: 3,
        clients: [client('crawl', { granted: 5 }), client('shop', { granted: 2, no_match: 1 })],
        agents: [agent('alpha', 6, 14)],
      },
    ];
    const { ledger } = fakeLedger(
      { stats: (_, shard) => byShard[shard] ?? Promise.reject(new Error('no such shard')) },
      { shards: 2 },
    );
    expect(await ledger.stats('shop')).toEqual({
      ok: true,
      value: {
        proxies: { total: 12, healthy: 2, unhealthy: 4, stale: 6, cordoned: 8, draining: 10 },
        leases: { active: 15 },
        waiting: 3,
        cooldowns: 5,
        clients: [
          client('crawl', { granted: 5 }),
          {
            name: 'shop',
            activeLeases: 2,
            waiting: 4,
            outcomes: { granted: 3, no_match: 1 },
            reports: { banned: 2 },
          },
        ],
        agents: [agent('alpha', 10, 1), agent('beta', 1, 2)],
      },
    });
  });
});
