import { describe, expect, it } from 'vitest';
import { shardOfProxy } from '#edge/ledger/shards.ts';
import type { LedgerCalls, SyncCall, SyncResult } from '#edge/object/rpc.ts';
import type { InventoryEntry, SyncRequest, SyncResponse } from '#shared/wire/sync.ts';
import { inventoryEntry } from '../inventory-entry.ts';
import { type Asked, fakeLedger, runtimeError } from './fake-shards.ts';

const SHARDS = 4;
const shardOf = (uid: string) => shardOfProxy('alpha', uid, SHARDS);

/** The names `0-a`, `0-b`, … of proxies of each shard. */
const FLEET: readonly (readonly InventoryEntry[])[] = [0, 1, 2, 3].map((shard) =>
  Array.from({ length: 200 }, (_, index) => inventoryEntry(`p${index}`, { maxLeases: 1 }))
    .filter(({ uid }) => shardOf(uid) === shard)
    .slice(0, 3),
);
const of = (shard: number) => FLEET[shard] ?? [];
const uidOf = (shard: number) => of(shard)[0]?.uid ?? '';

const BASE = { term: 1, session: 's', seq: 7, removes: [] as string[] };
const full: SyncRequest = { ...BASE, kind: 'full', upserts: FLEET.flat() };
const heartbeat: SyncRequest = { ...BASE, kind: 'heartbeat', upserts: [] };
const delta = (upserts: readonly InventoryEntry[], removes: string[] = []): SyncRequest => ({
  ...BASE,
  kind: 'delta',
  upserts: [...upserts],
  removes,
});

function accepted(response: Partial<SyncResponse> = {}, beat = false): SyncResult {
  const empty = { acceptedSeq: 7, serverTime: 1_000, leases: {}, reports: {}, counters: {} };
  return { ok: true, beat, response: { ...empty, ...response } };
}

const held = (leases: number) => ({ instance: 'machine', leases });

type Answers = (shard: number, call: SyncCall) => SyncResult;

function synced(answer: Answers, shards = SHARDS) {
  const fake = fakeLedger(
    {
      sync: (call, shard) => answer(shard, call),
      reshape: (_, shard) => ({
        leases: { [uidOf(0)]: held(shard), [uidOf(2)]: held(5) },
        lastToken: shard * 10,
      }),
    },
    { shards },
  );
  const calls = () => fake.asked.filter((asked): asked is Asked<'sync'> => asked.op === 'sync');
  const part = (call: Asked) => call.args as LedgerCalls['sync']['args'];
  return { ...fake, parts: () => calls().map((call) => ({ shard: call.shard, ...part(call) })) };
}

describe('a sync with one shard', () => {
  it('is one call with all of it', async () => {
    const { ledger, parts } = synced(() => accepted({}, true), 1);
    expect(await ledger.sync('alpha', full)).toEqual(accepted({}, true));
    expect(parts()).toMatchObject([{ shard: 0, cluster: 'alpha', request: full, shards: 1 }]);
  });
});

describe('a sync with several shards', () => {
  it('gives each shard its own proxies, shard 0 first', async () => {
    const { ledger, parts } = synced(() => accepted());
    await ledger.sync('alpha', full);
    expect(parts().map(({ shard, request }) => [shard, request])).toEqual(
      [0, 1, 2, 3].map((shard) => [shard, { ...full, upserts: of(shard) }]),
    );
  });

  it('goes to all with a heartbeat', async () => {
    const { ledger, parts } = synced(() => accepted());
    await ledger.sync('alpha', heartbeat);
    expect(parts().map(({ shard }) => shard)).toEqual([0, 1, 2, 3]);
  });

  it('goes with a delta to shard 0 and those that it concerns, and is partial then', async () => {
    const { ledger, parts } = synced((shard) =>
      accepted({ leases: { [uidOf(shard)]: shard + 1 }, counters: { granted: 1 } }),
    );
    const answer = await ledger.sync('alpha', delta(of(2), [uidOf(3)]));
    expect(parts().map(({ shard, request }) => [shard, request.upserts, request.removes])).toEqual([
      [0, [], []],
      [2, of(2), []],
      [3, [], [uidOf(3)]],
    ]);
    expect(answer).toMatchObject({
      ok: true,
      response: {
        partial: true,
        leases: { [uidOf(0)]: 1, [uidOf(2)]: 3, [uidOf(3)]: 4 },
        counters: {},
      },
    });
  });

  it('goes with a delta to all when shard 0 says that it is time', async () => {
    const { ledger, parts } = synced(() => accepted({}, true));
    const answer = await ledger.sync('alpha', delta(of(2)));
    expect(parts()).toHaveLength(4);
    expect(answer).not.toHaveProperty('response.partial');
  });

  it('answers with what all shards know', async () => {
    const report = (banned: number, ...targets: string[]) => ({ rate_limited: 1, banned, targets });
    const { ledger } = synced((shard) =>
      accepted({
        serverTime: 1_000 + shard,
        acceptedSeq: 7 + shard,
        leases: { [`u${shard}`]: 2, moved: 1 },
        reports: { moved: report(shard, 'a', `t${shard}`) },
        counters: { granted: 10 + shard, ['__proto__']: 1 },
      }),
    );
    const answer = await ledger.sync('alpha', heartbeat);
    expect(answer).toMatchObject({
      response: {
        acceptedSeq: 7,
        serverTime: 1_000,
        leases: { u0: 2, u1: 2, u2: 2, u3: 2, moved: 4 },
        reports: {
          moved: { rate_limited: 4, banned: 6, targets: ['a', 't0', 't1', 't2', 't3'] },
        },
      },
    });
    const counters = answer.ok ? Object.entries(answer.response.counters) : [];
    expect(counters).toEqual([
      ['granted', 46],
      ['__proto__', 4],
    ]);
  });

  it('is refused when shard 0 refuses, and nobody else hears of it', async () => {
    const refusal: SyncResult = { ok: false, code: 'stale_term', term: 9 };
    const { ledger, parts } = synced(() => refusal);
    expect(await ledger.sync('alpha', full)).toEqual(refusal);
    expect(parts()).toHaveLength(1);
  });

  it('is refused when any other shard refuses or fails', async () => {
    const refusal: SyncResult = { ok: false, code: 'resync_required', reason: 'unknown session' };
    const refused = synced((shard) => (shard === 3 ? refusal : accepted()));
    expect(await refused.ledger.sync('alpha', heartbeat)).toEqual(refusal);
    const failing = synced((shard) => {
      if (shard === 2) throw runtimeError({ overloaded: true });
      return accepted();
    });
    expect(await failing.ledger.sync('alpha', heartbeat)).toMatchObject({ code: 'overloaded' });
  });
});

describe('a change of the number of shards', () => {
  const reshape: SyncResult = { ok: false, code: 'reshape', from: 6 };
  const once = (wants: (shard: number) => boolean) =>
    synced((shard, { handover }) =>
      wants(shard) && handover === undefined ? reshape : accepted({ counters: { granted: 1 } }),
    );

  it('lets all shards, old and new, give up what is not theirs, and hands it over', async () => {
    const { ledger, trace, parts } = once(() => true);
    const answer = await ledger.sync('alpha', full);
    expect(answer).toMatchObject({ ok: true, response: { counters: { granted: 4 } } });
    expect(trace()).toEqual([
      'sync@0',
      ...[0, 1, 2, 3, 4, 5].map((shard) => `reshape@${shard}`),
      // Shard 0 is the last to forget that there was a change.
      ...[1, 2, 3, 0].map((shard) => `sync@${shard}`),
    ]);
    const [, ...again] = parts();
    expect(again.map(({ shard, handover }) => [shard, handover])).toEqual([
      [1, { leftovers: [], tokenFloor: 50 }],
      [
        2,
        {
          leftovers: [0, 1, 3, 4, 5].map((shard) => ({ shard, leases: { [uidOf(2)]: held(5) } })),
          tokenFloor: 50,
        },
      ],
      [3, { leftovers: [], tokenFloor: 50 }],
      [
        0,
        {
          leftovers: [1, 2, 3, 4, 5].map((shard) => ({
            shard,
            leases: { [uidOf(0)]: held(shard) },
          })),
          tokenFloor: 50,
        },
      ],
    ]);
  });

  it('is made up for a shard that has not heard of it', async () => {
    const { ledger, trace, parts } = once((shard) => shard === 2);
    expect(await ledger.sync('alpha', full)).toMatchObject({
      ok: true,
      response: { counters: { granted: 4 } },
    });
    expect(trace().slice(0, 4)).toEqual(['sync@0', 'sync@1', 'sync@2', 'sync@3']);
    expect(trace().slice(-1)).toEqual(['sync@2']);
    expect(parts().at(-1)?.handover?.tokenFloor).toBe(50);
  });

  it('begins anew when a shard fails on the way', async () => {
    const { ledger, parts } = synced((shard, { handover }) => {
      if (handover === undefined) return reshape;
      if (shard === 3) throw runtimeError({ overloaded: true });
      return accepted();
    });
    expect(await ledger.sync('alpha', full)).toMatchObject({ code: 'overloaded' });
    const lasts = parts().filter(({ shard }) => shard === 0);
    expect(lasts.map(({ handover }) => handover)).toEqual([undefined]);
  });

  it('is refused for now when a shard wants it again at once', async () => {
    const { ledger } = synced(() => reshape);
    expect(await ledger.sync('alpha', full)).toMatchObject({ ok: false, code: 'overloaded' });
  });
});
