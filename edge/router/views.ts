/** The whole ledger as one, of what each shard tells of its part: the list of proxies, the stats. */
import type { Position, ProxyPage } from '#edge/object/rpc.ts';
import type { Stats } from '#shared/wire/lease.ts';
import { sumRecords } from './sums.ts';

/**
 * The first `limit` proxies of the shards' pages, each of which has the shard's own first `limit`
 * behind the same place: what is not taken now lies behind the last one taken, and comes next.
 */
export function mergePages(pages: readonly ProxyPage[], limit: number): ProxyPage {
  const placed = pages.flatMap((page) =>
    page.proxies.flatMap((proxy, index) => {
      const position = page.positions[index];
      return position === undefined ? [] : [{ proxy, position }];
    }),
  );
  placed.sort((a, b) => comparePositions(a.position, b.position));
  const taken = placed.slice(0, limit);
  const last = taken.at(-1);
  const hasMore = placed.length > limit || pages.some(({ next }) => next !== undefined);
  return {
    proxies: taken.map(({ proxy }) => proxy),
    positions: taken.map(({ position }) => position),
    count: pages.reduce((sum, { count }) => sum + count, 0),
    ...(hasMore && last ? { next: last.position } : {}),
  };
}

/** The order of every shard's own pages. */
function comparePositions(a: Position, b: Position): number {
  return (
    compareText(a.cluster, b.cluster) ||
    compareText(a.namespace, b.namespace) ||
    compareText(a.name, b.name) ||
    compareText(a.uid, b.uid)
  );
}

/** By code units. */
function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Sums of all shards' figures. Shard 0 alone hears every sync: it knows about the agents. */
export function mergeStats(stats: readonly Stats[]): Stats {
  const [first] = stats;
  if (first === undefined) throw new Error('there is no shard');
  const total = (figure: (one: Stats) => number) =>
    stats.reduce((sum, one) => sum + figure(one), 0);
  return {
    proxies: {
      total: total(({ proxies }) => proxies.total),
      healthy: total(({ proxies }) => proxies.healthy),
      unhealthy: total(({ proxies }) => proxies.unhealthy),
      stale: total(({ proxies }) => proxies.stale),
      cordoned: total(({ proxies }) => proxies.cordoned),
      draining: total(({ proxies }) => proxies.draining),
    },
    leases: { active: total(({ leases }) => leases.active) },
    waiting: total(({ waiting }) => waiting),
    cooldowns: total(({ cooldowns }) => cooldowns),
    clients: mergeClients(stats.flatMap(({ clients }) => clients)),
    agents: first.agents.map((agent) => ({
      ...agent,
      proxies: total(
        ({ agents }) => agents.find(({ cluster }) => cluster === agent.cluster)?.proxies ?? 0,
      ),
    })),
  };
}

type ClientStats = Stats['clients'][number];

function mergeClients(all: readonly ClientStats[]): ClientStats[] {
  const byName = new Map<string, ClientStats>();
  for (const client of all) {
    const known = byName.get(client.name);
    byName.set(client.name, known === undefined ? client : addClients(known, client));
  }
  return [...byName.values()].sort((a, b) => compareText(a.name, b.name));
}

function addClients(a: ClientStats, b: ClientStats): ClientStats {
  return {
    name: a.name,
    activeLeases: a.activeLeases + b.activeLeases,
    waiting: a.waiting + b.waiting,
    outcomes: sumRecords([a.outcomes, b.outcomes]),
    reports: sumRecords([a.reports, b.reports]),
  };
}
