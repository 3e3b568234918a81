/** Looking at the whole book: the list of proxies, in pages, and the figures of `/v1/stats`. */
import type { ListedProxy, Stats } from '#shared/wire/lease.ts';
import type { Inventory } from './inventory.ts';
import { compareText } from './inventory.ts';
import type { ProxyRecord } from './model.ts';
import type { Rules } from './rules.ts';
import { isHealthy, isStale, matches, type Selector } from './selection.ts';
import { listedProxyView } from './views.ts';

/** A place in the order of proxies. */
export interface Position {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface ProxyQuery {
  readonly selector: Selector;
  readonly healthy?: boolean | undefined;
  readonly limit: number;
  /** The page begins behind this place. */
  readonly after?: Position | undefined;
}

export interface ProxyPage {
  readonly proxies: ListedProxy[];
  /** All that match, on this page or not. */
  readonly count: number;
  /** Where the next page begins, if there is one. */
  readonly next?: Position;
}

export function listProxies(
  inventory: Inventory,
  query: ProxyQuery,
  rules: Rules,
  nowMs: number,
): ProxyPage {
  const { after, limit } = query;
  const page: ProxyRecord[] = [];
  let count = 0;
  let hasMore = false;
  for (const proxy of inventory.ordered()) {
    if (!matches(proxy, query.selector)) continue;
    if (query.healthy !== undefined && isHealthy(proxy, rules, nowMs) !== query.healthy) continue;
    count++;
    if (after !== undefined && comparePositions(positionOf(proxy), after) <= 0) continue;
    if (page.length < limit) page.push(proxy);
    else hasMore = true;
  }
  const proxies = page.map((proxy) => listedProxyView(proxy, isHealthy(proxy, rules, nowMs)));
  const last = page.at(-1);
  return { proxies, count, ...(hasMore && last ? { next: positionOf(last) } : {}) };
}

export function countStats(
  inventory: Inventory,
  rules: Rules,
  nowMs: number,
): Pick<Stats, 'proxies' | 'agents'> {
  const proxies = { total: 0, healthy: 0, unhealthy: 0, stale: 0, cordoned: 0, draining: 0 };
  for (const proxy of inventory.all()) {
    proxies.total++;
    if (isStale(proxy, rules, nowMs)) proxies.stale++;
    else if (isHealthy(proxy, rules, nowMs)) proxies.healthy++;
    else proxies.unhealthy++;
    if (!proxy.entry.leasable) proxies.cordoned++;
    if (proxy.entry.draining) proxies.draining++;
  }
  const agents = [...inventory.clusters.values()]
    .sort((a, b) => compareText(a.name, b.name))
    .map((cluster) => ({
      cluster: cluster.name,
      term: cluster.agent.term,
      proxies: cluster.proxies.size,
      lastSyncAgeSeconds: Math.max(0, nowMs - cluster.agent.lastSyncMs) / 1000,
      stale: isStale({ cluster }, rules, nowMs),
    }));
  return { proxies, agents };
}

function positionOf(proxy: ProxyRecord): Position {
  const { namespace, name, uid } = proxy.entry;
  return { cluster: proxy.cluster.name, namespace, name, uid };
}

function comparePositions(a: Position, b: Position): number {
  return (
    compareText(a.cluster, b.cluster) ||
    compareText(a.namespace, b.namespace) ||
    compareText(a.name, b.name) ||
    compareText(a.uid, b.uid)
  );
}
