/**
 * A sync of a cluster's agent, divided among the shards. Shard 0 hears every sync: it keeps term,
 * session and order, and what it refuses is refused. The others hear what concerns them, and
 * everything that tells of the cluster as a whole. When one of the others fails, so does the sync:
 * the agent then sends everything again, which mends all of them.
 *
 * After a change of the number of shards a shard takes over proxies that others still have leases
 * of. It must know of those before it grants, so it asks for a `reshape`: all shards stop granting
 * what is no longer theirs and tell what they hold, and the sync comes again with that. Shard 0
 * takes it last: as long as it has not, the next full sync begins the change anew.
 */
import { shardOfProxy } from '#edge/ledger/shards.ts';
import type { Handover, Leftover, SyncResult } from '#edge/object/rpc.ts';
import type { SyncRequest } from '#shared/wire/sync.ts';
import { type CallDeps, type CallRefusal, callShard } from './calls.ts';
import { mergeResponses } from './sync-merge.ts';

export type SyncOutcome = SyncResult | CallRefusal;
type Refused = Extract<SyncOutcome, { readonly ok: false }>;
type Accepted = Extract<SyncOutcome, { readonly ok: true }>;

export interface SyncDeps extends CallDeps {
  readonly shards: number;
}

export async function sync(
  deps: SyncDeps,
  cluster: string,
  request: SyncRequest,
): Promise<SyncOutcome> {
  const { shards } = deps;
  const parts = divide(cluster, request, shards);
  const first = await send(deps, cluster, parts, 0);
  if (isReshape(first)) return reshapeAll(deps, cluster, parts, first.from);
  if (!first.ok) return first;
  const others = Array.from({ length: shards - 1 }, (_, index) => index + 1).filter(
    (shard) => request.kind !== 'delta' || first.beat || concerns(parts[shard]),
  );
  const outcomes = await Promise.all(others.map((shard) => send(deps, cluster, parts, shard)));
  const unshaped = outcomes.filter(isReshape);
  if (unshaped.length > 0) {
    return reshapeAll(deps, cluster, parts, Math.max(...unshaped.map(({ from }) => from)), {
      first,
      others,
      outcomes,
    });
  }
  return join(first, outcomes, others.length < shards - 1);
}

/** What came of the sync before it turned out that some shards lack a handover. */
interface Begun {
  readonly first: Accepted;
  readonly others: readonly number[];
  readonly outcomes: readonly SyncOutcome[];
}

async function reshapeAll(
  deps: SyncDeps,
  cluster: string,
  parts: readonly SyncRequest[],
  from: number,
  begun?: Begun,
): Promise<SyncOutcome> {
  const { shards } = deps;
  const holders = Array.from({ length: Math.max(from, shards) }, (_, shard) => shard);
  const answers = await Promise.all(
    holders.map((shard) => callShard(deps, shard, 'reshape', { cluster, shards })),
  );
  const leftovers: Leftover[] = [];
  for (const answer of answers) {
    if (!answer.ok) return answer;
    leftovers.push(answer.value);
  }
  const again = (shard: number) =>
    send(deps, cluster, parts, shard, handoverTo(shard, cluster, leftovers, shards));
  const others = begun?.others ?? holders.slice(1, shards);
  const outcomes = await Promise.all(
    others.map((shard, index) => {
      const outcome = begun?.outcomes[index];
      return outcome === undefined || isReshape(outcome) ? again(shard) : outcome;
    }),
  );
  const refused = outcomes.find(isRefused);
  if (refused !== undefined) return asRefusal(refused);
  const first = begun?.first ?? (await again(0));
  return first.ok ? join(first, outcomes, false) : asRefusal(first);
}

function join(first: Accepted, outcomes: readonly SyncOutcome[], partial: boolean): SyncOutcome {
  const refused = outcomes.find(isRefused);
  if (refused !== undefined) return asRefusal(refused);
  const responses = outcomes.flatMap((outcome) => (outcome.ok ? [outcome.response] : []));
  return { ...first, response: mergeResponses(first.response, responses, partial) };
}

/** A shard that wants a handover again has been told of another number of shards meanwhile. */
function asRefusal(refused: Refused): SyncOutcome {
  if (refused.code !== 'reshape') return refused;
  const reason = 'the fleet is being divided anew';
  return { ok: false, code: 'overloaded', reason, uncertain: false };
}

async function send(
  deps: SyncDeps,
  cluster: string,
  parts: readonly SyncRequest[],
  shard: number,
  handover?: Handover,
): Promise<SyncOutcome> {
  const request = parts[shard];
  if (request === undefined) throw new Error(`a sync has no part for shard ${shard}`);
  const args = { cluster, request, shards: deps.shards, handover };
  const reply = await callShard(deps, shard, 'sync', args);
  return reply.ok ? reply.value : reply;
}

/** Each shard's part of a sync. */
function divide(cluster: string, request: SyncRequest, shards: number): SyncRequest[] {
  if (shards === 1) return [request];
  const parts = Array.from(
    { length: shards },
    (): SyncRequest => ({ ...request, upserts: [], removes: [] }),
  );
  for (const entry of request.upserts) {
    parts[shardOfProxy(cluster, entry.uid, shards)]?.upserts.push(entry);
  }
  for (const uid of request.removes) parts[shardOfProxy(cluster, uid, shards)]?.removes.push(uid);
  return parts;
}

function concerns(part: SyncRequest | undefined): boolean {
  return part !== undefined && part.upserts.length + part.removes.length > 0;
}

/**
 * What the other shards hold of the shard's proxies. All of those, and not only the ones that the
 * request names: earlier pages of a full sync named others.
 */
function handoverTo(
  shard: number,
  cluster: string,
  leftovers: readonly Leftover[],
  shards: number,
): Handover {
  return {
    leftovers: leftovers.flatMap(({ leases }, holder) => {
      const own = Object.entries(leases).filter(
        ([uid]) => holder !== shard && shardOfProxy(cluster, uid, shards) === shard,
      );
      return own.length === 0 ? [] : [{ shard: holder, leases: Object.fromEntries(own) }];
    }),
    tokenFloor: Math.max(...leftovers.map(({ lastToken }) => lastToken)),
  };
}

function isRefused(outcome: SyncOutcome): outcome is Refused {
  return !outcome.ok;
}

function isReshape(outcome: SyncOutcome): outcome is Extract<Refused, { code: 'reshape' }> {
  return !outcome.ok && outcome.code === 'reshape';
}
