/** Which proxy a crawler gets, and why it gets none. Pure: looks at the book, changes nothing. */
import type { NoMatch } from '#shared/wire/errors.ts';
import type { Strategy } from '#shared/wire/lease.ts';
import type { Cooldowns } from './cooldowns.ts';
import { egressesOf } from './egress.ts';
import { compareByName } from './inventory.ts';
import type { ProxyRecord } from './model.ts';
import type { Rules } from './rules.ts';

export type Selector = Readonly<Record<string, string>>;

export interface Wish {
  readonly selector: Selector;
  readonly target: string | null;
  readonly strategy: Strategy;
}

export type Selection =
  | { readonly proxy: ProxyRecord }
  | {
      readonly proxy: undefined;
      readonly noMatch: NoMatch;
      /** Proxies that match but are cordoned or draining; they are not considered. */
      readonly withheld: number;
    };

/** Picks the best of the proxies that the selector matches and that can be offered now. */
export function select(
  proxies: Iterable<ProxyRecord>,
  wish: Wish,
  cooldowns: Cooldowns,
  rules: Rules,
  nowMs: number,
): Selection {
  const better = ORDERS[wish.strategy];
  const refused = { atCapacity: 0, inCooldown: 0, unhealthy: 0 };
  let withheld = 0;
  let freeMs = Number.POSITIVE_INFINITY;
  let best: ProxyRecord | undefined;
  for (const proxy of proxies) {
    if (!matches(proxy, wish.selector)) continue;
    const offer = judge(proxy, wish.target, cooldowns, rules, nowMs);
    if (offer.verdict === 'withheld') {
      withheld++;
    } else if (offer.verdict === 'eligible') {
      if (best === undefined || better(proxy, best) < 0) best = proxy;
    } else {
      refused[offer.verdict]++;
      freeMs = Math.min(freeMs, offer.freeMs);
    }
  }
  if (best !== undefined) return { proxy: best };
  const considered = refused.atCapacity + refused.inCooldown + refused.unhealthy;
  const noMatch = { considered, ...refused, eligible: 0 };
  if (freeMs === Number.POSITIVE_INFINITY) return { proxy: undefined, noMatch, withheld };
  const retryAfterSeconds = Math.max(1, Math.ceil((freeMs - nowMs) / 1000));
  return { proxy: undefined, noMatch: { ...noMatch, retryAfterSeconds }, withheld };
}

export function matches(proxy: ProxyRecord, selector: Selector): boolean {
  const { attributes } = proxy.entry;
  for (const [key, value] of Object.entries(selector)) {
    if (!Object.hasOwn(attributes, key) || attributes[key] !== value) return false;
  }
  return true;
}

/** Whether the agent of the proxy's cluster was silent for too long to be believed. */
export function isStale(proxy: Pick<ProxyRecord, 'cluster'>, rules: Rules, nowMs: number): boolean {
  return nowMs - proxy.cluster.agent.lastSyncMs >= rules.agentStaleMs;
}

/** Healthy as far as anybody knows now. */
export function isHealthy(proxy: ProxyRecord, rules: Rules, nowMs: number): boolean {
  return proxy.entry.healthy === true && !isStale(proxy, rules, nowMs);
}

type Offer =
  | { readonly verdict: 'eligible' }
  | { readonly verdict: 'withheld' }
  | {
      readonly verdict: 'atCapacity' | 'inCooldown' | 'unhealthy';
      /** When it can be had again by the mere passing of time. */
      readonly freeMs: number;
    };

function judge(
  proxy: ProxyRecord,
  target: string | null,
  cooldowns: Cooldowns,
  rules: Rules,
  nowMs: number,
): Offer {
  const { entry, cluster } = proxy;
  if (!entry.leasable || entry.draining) return { verdict: 'withheld' };
  if (!isHealthy(proxy, rules, nowMs)) {
    return { verdict: 'unhealthy', freeMs: Number.POSITIVE_INFINITY };
  }
  const cooledMs = cooldowns.endMs(egressesOf(cluster.name, entry), target);
  const slotMs = slotFreeMs(proxy);
  if (cooledMs > nowMs) return { verdict: 'inCooldown', freeMs: Math.max(cooledMs, slotMs) };
  if (slotMs > 0) return { verdict: 'atCapacity', freeMs: slotMs };
  return { verdict: 'eligible' };
}

/** When expiry alone brings the proxy below its capacity; 0 when it is below it now. */
function slotFreeMs(proxy: ProxyRecord): number {
  const excess = proxy.leases.size - proxy.entry.maxLeases;
  if (excess < 0) return 0;
  const ends = [...proxy.leases].map((lease) => lease.row.expiresMs).sort((a, b) => a - b);
  return ends[excess] ?? Number.POSITIVE_INFINITY;
}

type Order = (a: ProxyRecord, b: ProxyRecord) => number;

const ORDERS: Readonly<Record<Strategy, Order>> = {
  'least-loaded': (a, b) =>
    a.leases.size - b.leases.size || latency(a) - latency(b) || compareByName(a, b),
  spread: (a, b) =>
    a.leases.size - b.leases.size || a.usedToken - b.usedToken || compareByName(a, b),
};

/** A proxy of unknown latency comes after all known ones. */
function latency(proxy: ProxyRecord): number {
  return proxy.entry.latencyMillis ?? Number.MAX_SAFE_INTEGER;
}
