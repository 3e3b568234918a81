/** Tells an edge of its fleet, as an agent does. */
import { gzipSync } from 'node:zlib';
import { shardOfProxy } from '#edge/ledger/shards.ts';
import { HEARTBEAT_INTERVAL_MS, type InventoryEntry } from '#shared/wire/sync.ts';
import { AGENT_TOKEN, bearer } from '#test/workerd/tokens.ts';
import { proxyEntry } from './fleet.ts';

const PAGE_ENTRIES = 1_000;
const CLUSTER = 'bench';

/** An agent that tells an edge of its fleet. */
export interface FleetAgent {
  /** Keeps the fleet fresh, if the last word is that long ago that a real agent would speak. */
  heartbeat(): Promise<void>;
}

/** Fills an edge with `proxies` of them, the same number in each shard. */
export async function fillEdge(
  url: string,
  { proxies, shards }: { readonly proxies: number; readonly shards: number },
  nowMs: () => number,
): Promise<FleetAgent> {
  let seq = 0;
  let spokeMs = 0;
  const sync = async (change: Record<string, unknown>) => {
    const body = { term: 1, session: 'bench', seq: ++seq, ...change };
    const response = await fetch(`${url}/v1/agents/${CLUSTER}/sync`, {
      method: 'POST',
      headers: {
        ...bearer(AGENT_TOKEN),
        'content-type': 'application/json',
        'content-encoding': 'gzip',
      },
      body: gzipSync(JSON.stringify(body)),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`sync: ${response.status} ${text}`);
    spokeMs = nowMs();
  };
  const entries = evenFleet(proxies, shards);
  const of = Math.ceil(proxies / PAGE_ENTRIES);
  for (let index = 0; index < of; index++) {
    const upserts = entries.slice(index * PAGE_ENTRIES, (index + 1) * PAGE_ENTRIES);
    await sync({ kind: 'full', page: { index, of }, upserts });
  }
  // An object that was idle has forgotten the heartbeats since, as it does not store them.
  const basis = seq;
  return {
    async heartbeat() {
      if (nowMs() - spokeMs >= HEARTBEAT_INTERVAL_MS) await sync({ kind: 'heartbeat', basis });
    },
  };
}

/** Shards are chosen by hashes, which would give one of them more than it takes. */
function evenFleet(proxies: number, shards: number): InventoryEntry[] {
  const room = Array<number>(shards).fill(proxies / shards);
  const entries: InventoryEntry[] = [];
  for (let index = 0; entries.length < proxies; index++) {
    const entry = proxyEntry(index);
    const shard = shardOfProxy(CLUSTER, entry.uid, shards);
    const left = room[shard] ?? 0;
    if (left <= 0) continue;
    room[shard] = left - 1;
    entries.push(entry);
  }
  return entries;
}
