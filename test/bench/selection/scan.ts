/** What the book is measured beside: the same question, answered by a look at every proxy. */
import type { InventoryEntry } from '#shared/wire/sync.ts';

export interface ScannedProxy {
  readonly entry: InventoryEntry;
  /** By target. */
  readonly cooldowns: ReadonlyMap<string, number>;
  active: number;
}

/** The one with the fewest leases; among those the fastest, then the first by name. */
export function scanForBest(
  proxies: readonly ScannedProxy[],
  target: string,
  nowMs: number,
): ScannedProxy | undefined {
  let best: ScannedProxy | undefined;
  for (const proxy of proxies) {
    const { healthy, leasable, draining, maxLeases } = proxy.entry;
    if (healthy !== true || !leasable || draining || proxy.active >= maxLeases) continue;
    if ((proxy.cooldowns.get(target) ?? 0) > nowMs) continue;
    if (best === undefined || isBefore(proxy, best)) best = proxy;
  }
  return best;
}

function isBefore(one: ScannedProxy, other: ScannedProxy): boolean {
  if (one.active !== other.active) return one.active < other.active;
  const [mine = Infinity, its = Infinity] = [one.entry.latencyMillis, other.entry.latencyMillis];
  return mine === its ? one.entry.name < other.entry.name : mine < its;
}
