/** The orders of preference among proxies that are equally loaded (contract §2, `strategy`). */
import type { ProxyRecord } from './model.ts';

export interface Order {
  /** All of them, best first. `byName` is what it says, and breaks ties. */
  arrange(byName: readonly ProxyRecord[]): readonly ProxyRecord[];
  /** A proxy that is used becomes the last of all. */
  readonly usedGoesLast: boolean;
}

/** A proxy of unknown latency comes after all known ones. */
const UNKNOWN_LATENCY = 2 ** 31;
/** More than there are proxies, so that one number holds both parts of a key. */
const RANKS = 2 ** 20;

/** By latency. */
export const fastestFirst: Order = {
  usedGoesLast: false,
  arrange(byName) {
    // Numbers in a typed array sort some ten times faster than records by a comparison.
    const keys = Float64Array.from(byName, ({ entry }, rank) => {
      const latency = Math.min(entry.latencyMillis ?? UNKNOWN_LATENCY, UNKNOWN_LATENCY);
      return latency * RANKS + rank;
    }).sort();
    return pick(
      byName,
      Array.from(keys, (key) => key % RANKS),
    );
  },
};

/** Never used first, then the longest unused. */
export const longestUnusedFirst: Order = {
  usedGoesLast: true,
  arrange(byName) {
    // Sorting is stable: ties stay in the order of names.
    return [...byName].sort((a, b) => a.usedToken - b.usedToken);
  },
};

function pick(proxies: readonly ProxyRecord[], ranks: readonly number[]): ProxyRecord[] {
  return ranks.flatMap((rank) => proxies[rank] ?? []);
}
