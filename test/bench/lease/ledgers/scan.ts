/** The original's way: all in the memory of one process, and each request looks at every proxy. */
import { type ProxyFacts, proxyFacts } from '../answer.ts';
import type { Ledger } from '../baseline-app.ts';
import { maxLeasesOf, USED_SHARE } from '../fleet.ts';

interface Candidate {
  readonly facts: ProxyFacts;
  readonly latencyMs: number;
  readonly maxLeases: number;
  active: number;
}

export async function openScan(proxies: number): Promise<Ledger> {
  const candidates = Array.from({ length: proxies }, (_, index): Candidate => {
    const facts = proxyFacts(index);
    const active = index < proxies * USED_SHARE ? 1 : 0;
    const latencyMs = facts.latencyMillis ?? 0;
    return { facts, latencyMs, maxLeases: maxLeasesOf(index), active };
  });
  const leases = new Map<string, Candidate>();
  let token = 0;
  return {
    async acquire() {
      const best = leastLoaded(candidates);
      if (best === undefined) return undefined;
      best.active++;
      const id = crypto.randomUUID();
      leases.set(id, best);
      return { id, token: ++token, proxy: best.facts };
    },
    async release(id) {
      const held = leases.get(id);
      if (held !== undefined) held.active--;
      leases.delete(id);
    },
  };
}

/** The one with the fewest leases; among those the fastest, then the first by name. */
function leastLoaded(candidates: readonly Candidate[]): Candidate | undefined {
  let best: Candidate | undefined;
  for (const one of candidates) {
    if (one.active >= one.maxLeases) continue;
    if (best === undefined || isBefore(one, best)) best = one;
  }
  return best;
}

function isBefore(one: Candidate, other: Candidate): boolean {
  if (one.active !== other.active) return one.active < other.active;
  if (one.latencyMs !== other.latencyMs) return one.latencyMs < other.latencyMs;
  return one.facts.name < other.facts.name;
}
