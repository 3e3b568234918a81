/**
 * The agent's side of the book: which syncs are accepted, and what they do to the inventory.
 *
 * Every accepted full or delta sync is in storage before it is answered. A heartbeat is written
 * only when the stored time of the last sync is older than a third of what makes a cluster stale:
 * after a restart a cluster may look up to that much older than it is, never younger. The `seq`s
 * of such heartbeats are then unknown to the book as well; a sync goes on all the same when it is
 * based on the last change that the book has.
 */
import type { InventoryEntry, SyncRequest } from '#shared/wire/sync.ts';
import type { Inventory, InventoryUpdate } from './inventory.ts';
import { type AgentRow, type Change, CLUSTERS_MAX, type Cluster, PROXIES_MAX } from './model.ts';
import type { Rules } from './rules.ts';

export type SyncRefusal =
  /** A newer leader has spoken: its term. */
  | { readonly code: 'stale_term'; readonly term: number }
  | { readonly code: 'resync_required'; readonly reason: string }
  | { readonly code: 'inventory_full'; readonly reason: string };

/** `update` is undefined when there was nothing to apply: a repetition, a page before the last. */
export type SyncOutcome =
  | {
      readonly ok: true;
      readonly acceptedSeq: number;
      readonly update: InventoryUpdate | undefined;
    }
  | ({ readonly ok: false; readonly changes: readonly Change[] } & SyncRefusal);

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
  readonly #inventory: Inventory;
  /** By cluster. In memory only: after a restart the agent starts its full sync again. */
  readonly #staging = new Map<string, Staging>();

  constructor(rules: Rules, inventory: Inventory) {
    this.#rules = rules;
    this.#inventory = inventory;
  }

  apply(cluster: string, request: SyncRequest, nowMs: number): SyncOutcome {
    const agent = this.#inventory.clusters.get(cluster)?.agent;
    if (agent !== undefined && request.term < agent.term) {
      return { ok: false, code: 'stale_term', term: agent.term, changes: [] };
    }
    if (agent === undefined && this.#inventory.clusters.size >= CLUSTERS_MAX) {
      return refuse('inventory_full', `at most ${CLUSTERS_MAX} clusters fit`);
    }
    const resumes = agent?.session === request.session && agent.term === request.term;
    if (resumes && request.seq <= agent.seq) {
      return { ok: true, acceptedSeq: agent.seq, update: undefined };
    }
    if (request.kind === 'full') return this.#full(cluster, request, nowMs);
    if (resumes && (request.seq === agent.seq + 1 || request.basis === agent.basis)) {
      this.#staging.delete(cluster);
      return this.#next(cluster, agent, request, nowMs);
    }
    const reason = resumes ? `expected seq ${agent.seq + 1}` : 'unknown session';
    return this.#resync(cluster, request, reason);
  }

  #full(cluster: string, request: SyncRequest, nowMs: number): SyncOutcome {
    const { page, seq } = request;
    if (page === undefined || page.of === 1) {
      this.#staging.delete(cluster);
      return this.#replace(cluster, request, request.upserts, nowMs);
    }
    const staged = this.#staged(cluster, request);
    if (staged === undefined) return this.#resync(cluster, request, 'expected page 0');
    if (seq === staged.seq && page.index === staged.pages - 1) {
      return { ok: true, acceptedSeq: seq, update: undefined };
    }
    if (page.index !== staged.pages || seq <= staged.seq) {
      this.#staging.delete(cluster);
      return this.#resync(cluster, request, `expected page ${staged.pages}, all again from page 0`);
    }
    staged.seq = seq;
    staged.pages++;
    staged.entries.push(...request.upserts);
    const isLast = staged.pages === staged.of;
    if (isLast || this.#overflows(cluster, staged.entries)) this.#staging.delete(cluster);
    if (isLast) return this.#replace(cluster, request, staged.entries, nowMs);
    if (!this.#staging.has(cluster)) return refuse('inventory_full', FULL);
    const update = { changes: this.#fence(cluster, request), bereaved: [] };
    return { ok: true, acceptedSeq: seq, update };
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
    request: SyncRequest,
    entries: readonly InventoryEntry[],
    nowMs: number,
  ): SyncOutcome {
    if (this.#overflows(name, entries)) return refuse('inventory_full', FULL);
    const agent = this.#inventory.putAgent(agentRow(name, request, nowMs));
    const update = this.#inventory.replace(this.#cluster(name), entries);
    update.changes.unshift(agent);
    return { ok: true, acceptedSeq: request.seq, update };
  }

  #next(name: string, agent: AgentRow, request: SyncRequest, nowMs: number): SyncOutcome {
    const cluster = this.#cluster(name);
    const beat = { ...agent, seq: request.seq, lastSyncMs: nowMs };
    if (request.kind === 'heartbeat') {
      const isSavedRecently = nowMs - cluster.savedSyncMs < this.#rules.agentStaleMs / 3;
      if (isSavedRecently) cluster.agent = beat;
      const changes = isSavedRecently ? [] : [this.#inventory.putAgent(beat)];
      return { ok: true, acceptedSeq: beat.seq, update: { changes, bereaved: [] } };
    }
    const added = request.upserts.filter((entry) => !cluster.proxies.has(entry.uid));
    if (this.#inventory.size + added.length > PROXIES_MAX && added.length > 0) {
      return refuse('inventory_full', FULL);
    }
    const update = this.#inventory.merge(cluster, request.upserts, request.removes);
    update.changes.unshift(this.#inventory.putAgent({ ...beat, basis: beat.seq }));
    return { ok: true, acceptedSeq: beat.seq, update };
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

  /** Whether the entries are too many in place of those that the cluster has now. */
  #overflows(name: string, entries: readonly InventoryEntry[]): boolean {
    const added = entries.length - (this.#inventory.clusters.get(name)?.proxies.size ?? 0);
    return added > 0 && this.#inventory.size + added > PROXIES_MAX;
  }

  #cluster(name: string): Cluster {
    const cluster = this.#inventory.clusters.get(name);
    if (cluster === undefined) throw new Error(`cluster ${name} was not opened`);
    return cluster;
  }
}

const FULL = `at most ${PROXIES_MAX} proxies fit`;

function refuse(code: 'inventory_full', reason: string): SyncOutcome {
  return { ok: false, code, reason, changes: [] };
}

function agentRow(cluster: string, request: SyncRequest, nowMs: number): AgentRow {
  const { term, session, seq } = request;
  return { cluster, term, session, seq, basis: seq, lastSyncMs: nowMs };
}
