/**
 * The agent's side of the book: which syncs are accepted, and what they do to the inventory.
 *
 * Every accepted full or delta sync is in storage before it is answered. A heartbeat is written
 * only when the stored time of the last sync is older than a third of what makes a cluster stale:
 * after a restart a cluster may look up to that much older than it is, never younger. The `seq`s
 * of such heartbeats are then unknown to the book as well; a sync goes on all the same when it is
 * based on the last change that the book has.
 *
 * Of several shards, shard 0 hears every sync and so keeps the order of them. The others hear those
 * that concern them, and now and then one that does not, lest they think that the agent is silent.
 */
import { HEARTBEAT_INTERVAL_MS, type InventoryEntry, type SyncRequest } from '#shared/wire/sync.ts';
import { type Inventory, lengthOf } from './inventory.ts';
import {
  type AgentRow,
  type Change,
  CLUSTERS_MAX,
  type Cluster,
  ENTRIES_LENGTH_MAX,
  type Handover,
  PROXIES_MAX,
} from './model.ts';
import type { Moves } from './moves.ts';
import type { SyncRefusal } from './results.ts';
import type { Rules } from './rules.ts';

/** `changes` are to be written in any case. */
export type SyncOutcome =
  | { readonly ok: true; readonly acceptedSeq: number; readonly changes: readonly Change[] }
  | (SyncRefusal & { readonly changes: readonly Change[] });

/** A part of a sync, for this shard of so many. */
export interface SyncPart {
  readonly request: SyncRequest;
  readonly shards: number;
  readonly handover?: Handover | undefined;
}

/** Pages of a full sync that wait for the last one. */
interface Staging {
  readonly term: number;
  readonly session: string;
  readonly of: number;
  seq: number;
  pages: number;
  entries: InventoryEntry[];
}

export class Syncs {
  readonly #rules: Rules;
  readonly #shard: number;
  readonly #inventory: Inventory;
  readonly #moves: Moves;
  /** By cluster. In memory only: after a restart the agent starts its full sync again. */
  readonly #staging = new Map<string, Staging>();
  /** When the other shards heard of each cluster last. */
  readonly #beats = new Map<string, number>();

  constructor(rules: Rules, shard: number, inventory: Inventory, moves: Moves) {
    this.#rules = rules;
    this.#shard = shard;
    this.#inventory = inventory;
    this.#moves = moves;
  }

  apply(cluster: string, part: SyncPart, nowMs: number): SyncOutcome {
    const { request } = part;
    const agent = this.#inventory.clusters.get(cluster)?.agent;
    if (agent !== undefined && request.term < agent.term) {
      return { ok: false, code: 'stale_term', term: agent.term, changes: [] };
    }
    if (agent === undefined && this.#inventory.clusters.size >= CLUSTERS_MAX) {
      return refuse(`at most ${CLUSTERS_MAX} clusters fit`);
    }
    const resumes = agent?.session === request.session && agent.term === request.term;
    if (resumes && request.seq <= agent.seq) return accept(agent.seq, []);
    if (request.kind === 'full') return this.#full(cluster, part, nowMs);
    if (!resumes) return this.#resync(cluster, request, 'unknown session');
    if (agent.shards !== part.shards) {
      return this.#resync(cluster, request, 'the fleet is divided among other shards now');
    }
    const isNext = request.seq === agent.seq + 1 || request.basis === agent.basis;
    if (this.#shard === 0 && !isNext) {
      return this.#resync(cluster, request, `expected seq ${agent.seq + 1}`);
    }
    this.#staging.delete(cluster);
    return this.#next(cluster, agent, request, nowMs);
  }

  /** Whether all shards should hear of the cluster now, since this sync may concern only some. */
  isBeatDue(cluster: string, kind: SyncRequest['kind'], nowMs: number): boolean {
    const lastMs = this.#beats.get(cluster) ?? Number.NEGATIVE_INFINITY;
    const isDue = kind !== 'delta' || nowMs - lastMs >= HEARTBEAT_INTERVAL_MS;
    if (isDue) this.#beats.set(cluster, nowMs);
    return isDue;
  }

  #full(cluster: string, part: SyncPart, nowMs: number): SyncOutcome {
    const { page, seq, upserts } = part.request;
    if (page === undefined || page.of === 1) {
      this.#staging.delete(cluster);
      return this.#replace(cluster, part, upserts, nowMs);
    }
    const staged = this.#staged(cluster, part.request);
    if (staged === undefined) return this.#resync(cluster, part.request, 'expected page 0');
    if (seq === staged.seq && page.index === staged.pages - 1) return accept(seq, []);
    if (page.index !== staged.pages || seq <= staged.seq) {
      this.#staging.delete(cluster);
      const reason = `expected page ${staged.pages}, all again from page 0`;
      return this.#resync(cluster, part.request, reason);
    }
    const entries = [...staged.entries, ...upserts];
    const full = this.#fault(this.#inventory.clusters.get(cluster), entries, 'instead');
    if (full !== undefined) {
      this.#staging.delete(cluster);
      return refuse(full);
    }
    if (page.index === page.of - 1) {
      const outcome = this.#replace(cluster, part, entries, nowMs);
      // After `reshape` this page comes once more.
      if (outcome.ok || outcome.code !== 'reshape') this.#staging.delete(cluster);
      return outcome;
    }
    Object.assign(staged, { seq, pages: staged.pages + 1, entries });
    return accept(seq, this.#fence(cluster, part.request));
  }

  /** The pages that this one continues; a first page always begins anew. */
  #staged(cluster: string, request: SyncRequest): Staging | undefined {
    const { term, session, seq, page } = request;
    const known = this.#staging.get(cluster);
    const continues =
      known !== undefined &&
      known.term === term &&
      known.session === session &&
      known.of === page?.of &&
      !(page.index === 0 && seq !== known.seq);
    if (continues) return known;
    if (page?.index !== 0) return undefined;
    const begun = { term, session, of: page.of, seq: seq - 1, pages: 0, entries: [] };
    this.#staging.set(cluster, begun);
    return begun;
  }

  #replace(
    name: string,
    { request, shards, handover }: SyncPart,
    entries: readonly InventoryEntry[],
    nowMs: number,
  ): SyncOutcome {
    const known = this.#inventory.clusters.get(name);
    const full = this.#fault(known, entries, 'instead');
    if (full !== undefined) return refuse(full);
    const before = known?.agent;
    const adopted = before?.shards ?? 0;
    const mostShards = Math.max(before?.mostShards ?? 1, shards);
    const isDividedAnew = adopted === 0 ? this.#shard > 0 : adopted !== shards;
    if (isDividedAnew && handover === undefined) {
      return { ok: false, code: 'reshape', from: mostShards, changes: [] };
    }
    const { term, session, seq } = request;
    const agent = { cluster: name, term, session, seq, basis: seq, lastSyncMs: nowMs };
    const put = this.#inventory.putAgent({ ...agent, shards, nextShards: shards, mostShards });
    const cluster = this.#cluster(name);
    this.#moves.mark(cluster);
    return accept(seq, [put, ...this.#inventory.replace(cluster, entries, handover)]);
  }

  #next(name: string, agent: AgentRow, request: SyncRequest, nowMs: number): SyncOutcome {
    const cluster = this.#cluster(name);
    const beat = { ...agent, seq: request.seq, lastSyncMs: nowMs };
    if (request.kind === 'heartbeat') {
      const isSavedRecently = nowMs - cluster.savedSyncMs < this.#rules.agentStaleMs / 3;
      if (!isSavedRecently) return accept(beat.seq, [this.#inventory.putAgent(beat)]);
      this.#inventory.heard(cluster, beat);
      return accept(beat.seq, []);
    }
    const full = this.#fault(cluster, request.upserts, 'beside');
    if (full !== undefined) return refuse(full);
    const put = this.#inventory.putAgent({ ...beat, basis: beat.seq });
    const merged = this.#inventory.merge(cluster, request.upserts, request.removes);
    return accept(beat.seq, [put, ...merged]);
  }

  #resync(name: string, request: SyncRequest, reason: string): SyncOutcome {
    return { ok: false, code: 'resync_required', reason, changes: this.#fence(name, request) };
  }

  /** A higher term shuts the old leader out from the first time that it is seen. */
  #fence(name: string, request: SyncRequest): Change[] {
    const agent = this.#inventory.clusters.get(name)?.agent;
    if (agent === undefined || request.term <= agent.term) return [];
    const fence = { term: request.term, session: null, seq: 0, basis: 0 };
    return [this.#inventory.putAgent({ ...agent, ...fence })];
  }

  /** Why the entries do not fit, `beside` those that the cluster has or in the place of them. */
  #fault(
    cluster: Cluster | undefined,
    entries: readonly InventoryEntry[],
    how: 'beside' | 'instead',
  ): string | undefined {
    const { size, length } = this.#inventory;
    let [more, longer] = [0, 0];
    for (const entry of entries) {
      const known = how === 'beside' ? cluster?.proxies.get(entry.uid) : undefined;
      more += known === undefined ? 1 : 0;
      longer += lengthOf(entry) - (known?.length ?? 0);
    }
    if (how === 'instead') {
      for (const proxy of cluster?.proxies.values() ?? []) {
        more--;
        longer -= proxy.length;
      }
    }
    // What becomes less is always taken.
    if (more > 0 && size + more > PROXIES_MAX) return `at most ${PROXIES_MAX} proxies ${REMEDY}`;
    if (longer > 0 && length + longer > ENTRIES_LENGTH_MAX) {
      return `at most ${ENTRIES_LENGTH_MAX} characters of proxies ${REMEDY}`;
    }
    return undefined;
  }

  #cluster(name: string): Cluster {
    const cluster = this.#inventory.clusters.get(name);
    if (cluster === undefined) throw new Error(`cluster ${name} was not opened`);
    return cluster;
  }
}

const REMEDY = 'fit in a shard; raise LEASE_SHARDS';

function accept(acceptedSeq: number, changes: readonly Change[]): SyncOutcome {
  return { ok: true, acceptedSeq, changes };
}

function refuse(reason: string): SyncOutcome {
  return { ok: false, code: 'inventory_full', reason, changes: [] };
}
