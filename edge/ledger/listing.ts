/** Looking at the whole book: the list of proxies, in pages, and the figures of `/v1/stats`. */
import type { ListedProxy, Stats } from '#shared/wire/lease.ts';
import type { Inventory } from './inventory.ts';
import { compareText } from './inventory.ts';
import type { ProxyRecord } from './model.ts';
import { matches, type Selector } from './selector.ts';
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
  /** Where each of them stands; what a merge of several shards' pages goes by. */
  readonly positions: readonly Position[];
  /** All that match, on this page or not. */
  readonly count: number;
  /** Where the next page begins, if there is one. */
  readonly next?: Position;
}

export function listProxies(inventory: Inventory, query: ProxyQuery): ProxyPage {
  const { after, limit } = query;
  const page: ProxyRecord[] = [];
  let count = 0;
  let hasMore = false;
  for (const proxy of inventory.ordered()) {
    if (proxy.leaving) continue;
    if (!matches(proxy, query.selector)) continue;
    if (query.healthy !== undefined && isHealthy(proxy) !== query.healthy) continue;
    count++;
    if (after !== undefined && comparePositions(positionOf(proxy), after) <= 0) continue;
    if (page.length < limit) page.push(proxy);
    else hasMore = true;
  }
  const proxies = page.map((proxy) => listedProxyView(proxy, isHealthy(proxy)));
  const last = page.at(-1);
  const next = hasMore && last ? { next: positionOf(last) } : {};
  return { proxies, positions: page.map(positionOf), count, ...next };
}

export function countStats(inventory: Inventory, nowMs: number): Pick<Stats, 'proxies' | 'agents'> {
  const proxies = { total: 0, healthy: 0, unhealthy: 0, stale: 0, cordoned: 0, draining: 0 };
  for (const proxy of inventory.all()) {
    if (proxy.leaving) continue;
    proxies.total++;
    if (proxy.cluster.stale) proxies.stale++;
    else if (isHealthy(proxy)) proxies.healthy++;
    else proxies.unhealthy++;
    if (!proxy.entry.leasable) proxies.cordoned++;
    if (proxy.entry.draining) proxies.draining++;
  }
  const agents = [...inventory.clusters.values()]
    .sort((a, b) => compareText(a.name, b.name))
    .map((cluster) => ({
      cluster: cluster.name,
      term: cluster.agent.term,
      proxies: [...cluster.proxies.values()].filter(({ leaving }) => !leaving).length,
      lastSyncAgeSeconds: Math.max(0, nowMs - cluster.agent.lastSyncMs) / 1000,
      stale: cluster.stale,
    }));
  return { proxies, agents };
}

/** Healthy as far as anybody knows now. */
function isHealthy(proxy: ProxyRecord): boolean {
  return proxy.entry.healthy === true && !proxy.cluster.stale;
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
