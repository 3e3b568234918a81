/** Shards beside each other: what one holds of proxies that belong to another. */
import { describe, expect, it } from 'vitest';
import { shardOfProxy } from '#edge/ledger/shards.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { entry, Ledger } from './harness.ts';

const nameIn = (shard: number, shards: number) => {
  for (let at = 0; ; at++) {
    const name = `p${at}`;
    if (shardOfProxy('c', `uid-${name}`, shards) === shard) return name;
  }
};

/** Of one shard made two: the old one, the new one, and a proxy that moves to the new one. */
function divided(overrides: Partial<InventoryEntry> = {}) {
  const name = nameIn(1, 2);
  const proxy = entry(name, { maxLeases: 3, ...overrides });
  const stays = entry(nameIn(0, 2));
  const old = new Ledger({ shards: 1 });
  old.has(proxy, stays);
  const leases = [0, 1].map(() => old.granted({ selector: {}, ttlSeconds: 60 }));
  const mine = leases.filter((lease) => lease.proxy.name === name);
  const young = new Ledger({ shard: 1, shards: 2 });
  return { name, proxy, stays, old, young, mine };
}

function move({ old, young, proxy, stays }: ReturnType<typeof divided>) {
  const leftover = old.commit(old.book.reshape('c', 2, old.nowMs));
  const leftovers = [{ shard: 0, leases: leftover.leases }];
  const handover = { leftovers, tokenFloor: leftover.lastToken };
  const full = { kind: 'full', seq: 9, session: 's2' } as const;
  expect(young.sync('c', { ...full, upserts: [proxy] }, handover)).toMatchObject({ ok: true });
  old.resize(2);
  const rest = { leftovers: [], tokenFloor: 0 };
  expect(old.sync('c', { ...full, upserts: [stays] }, rest)).toMatchObject({ ok: true });
}

describe('a proxy that moves to another shard', () => {
  it('is not taken over before the others have given it up', () => {
    const { young, proxy, old, stays } = divided();
    const full = { kind: 'full', seq: 9, session: 's2' } as const;
    expect(young.sync('c', { ...full, upserts: [proxy] })).toMatchObject({ code: 'reshape' });
    old.resize(2);
    expect(old.sync('c', { ...full, upserts: [stays] })).toMatchObject({
      code: 'reshape',
      from: 2,
    });
    expect(old.sync('c', { kind: 'heartbeat' })).toMatchObject({ code: 'resync_required' });
  });

  it('is given out no more by the old one, also after a restart', () => {
    const world = divided();
    const { old, name } = world;
    old.commit(old.book.reshape('c', 2, old.nowMs));
    for (const restarts of [false, true]) {
      if (restarts) old.restart();
      for (let at = 0; at < 5; at++) {
        const result = old.acquire();
        if (result.ok) expect(result.lease.proxy.name).not.toBe(name);
      }
    }
  });

  it('never has more leases than it may, in both together', () => {
    const world = divided();
    const { young, mine } = world;
    move(world);
    expect(mine.length).toBeGreaterThan(0);
    for (let left = 3 - mine.length; left > 0; left--) young.granted();
    expect(young.refused()).toMatchObject({ atCapacity: 1 });
    young.restart();
    expect(young.refused()).toMatchObject({ atCapacity: 1 });
    expect(young.list().proxies).toMatchObject([{ activeLeases: 3 }]);
  });

  it('has room for each lease that ends in the old one, once that was heard', () => {
    const world = divided();
    const { young, old, mine, proxy } = world;
    move(world);
    for (let left = 3 - mine.length; left > 0; left--) young.granted();
    for (const { leaseID } of mine) old.release(leaseID);
    const instances = { [proxy.uid]: proxy.instance };
    expect(young.book.heldElsewhere('c')).toEqual(new Map([[0, instances]]));
    const counts = old.book.held('c', instances, old.nowMs);
    expect(counts).toEqual({ [proxy.uid]: 0 });
    young.commit(young.book.setHeld('c', 0, counts, young.nowMs));
    young.granted();
    expect(young.book.heldElsewhere('c').size).toBe(0);
  });

  it('owes nothing to leases on a machine that is no more', () => {
    const world = divided();
    const { old, young, proxy, mine } = world;
    const replaced = { ...proxy, instance: 'other' };
    move({ ...world, proxy: replaced });
    expect(mine.length).toBeGreaterThan(0);
    expect(young.book.heldElsewhere('c').size).toBe(0);
    const instances = { [proxy.uid]: 'other' };
    expect(old.book.held('c', instances, old.nowMs)).toEqual({ [proxy.uid]: 0 });
    for (let at = 0; at < 3; at++) young.granted();
  });

  it('believes no answer that is older than another one', () => {
    const world = divided();
    const { young, proxy, mine } = world;
    move(world);
    young.commit(young.book.setHeld('c', 0, { [proxy.uid]: 0 }, young.nowMs));
    young.commit(young.book.setHeld('c', 0, { [proxy.uid]: mine.length }, young.nowMs));
    expect(young.book.heldElsewhere('c').size).toBe(0);
  });

  it('keeps the leases of the old one alive, renewed by what the new one says', () => {
    const world = divided();
    const { old, young, mine, proxy, name } = world;
    move(world);
    const id = mine[0]?.leaseID ?? '';
    for (const restarts of [false, true]) {
      if (restarts) old.restart();
      expect(old.get(id)).toMatchObject({ ok: true, lease: { proxy: { name } } });
      expect(old.book.strayed(id)).toEqual({ cluster: 'c', uid: proxy.uid, shard: 1 });
      const now = young.book.entry('c', proxy.uid);
      expect(now).toBeDefined();
      old.commit(old.book.follow('c', proxy.uid, now, old.nowMs));
      expect(old.renew(id, 60)).toMatchObject({ ok: true });
    }
    expect(old.list().proxies.map((one) => one.name)).not.toContain(name);
  });

  it('ends the leases of the old one when it is removed or replaced in the new one', () => {
    for (const after of [[], [entry(nameIn(1, 2), { instance: 'other' })]]) {
      const world = divided();
      const { old, young, mine, proxy } = world;
      move(world);
      young.sync('c', { kind: 'full', seq: 10, session: 's2', upserts: after });
      const now = young.book.entry('c', proxy.uid);
      old.commit(old.book.follow('c', proxy.uid, now, old.nowMs));
      expect(old.renew(mine[0]?.leaseID ?? '')).toMatchObject({ code: 'proxy_gone' });
    }
  });

  it('leaves no row behind when its last lease has ended', () => {
    const world = divided();
    const { old, mine, proxy } = world;
    move(world);
    for (const { leaseID } of mine) old.release(leaseID);
    expect(old.book.nextSweepMs).toBeDefined();
    old.sweep();
    expect(old.store.snapshot().proxies.map(({ entry: { uid } }) => uid)).not.toContain(proxy.uid);
    expect(old.store.snapshot().leases.map(({ uid }) => uid)).not.toContain(proxy.uid);
  });

  it('gets tokens above all that it ever had', () => {
    const world = divided();
    const { young, mine } = world;
    young.nowMs -= 10_000;
    move(world);
    const { token } = young.granted();
    for (const lease of mine) expect(token).toBeGreaterThan(lease.token);
  });

  it('comes back, when the division is taken back, with what the other one holds by then', () => {
    const world = divided();
    const { old, young, mine, proxy, stays } = world;
    move(world);
    const lease = young.granted();
    const leftover = young.commit(young.book.reshape('c', 1, young.nowMs));
    expect(leftover.leases).toEqual({ [proxy.uid]: { instance: proxy.instance, leases: 1 } });
    old.commit(old.book.reshape('c', 1, old.nowMs));
    old.resize(1);
    const handover = {
      leftovers: [{ shard: 1, leases: leftover.leases }],
      tokenFloor: leftover.lastToken,
    };
    const full = { kind: 'full', seq: 10, session: 's2' } as const;
    expect(old.sync('c', { ...full, upserts: [proxy, stays] }, handover)).toMatchObject({
      ok: true,
    });
    const there = old.list().proxies.find(({ name }) => name === proxy.name);
    expect(there?.activeLeases).toBe(mine.length + 1);
    expect(young.get(lease.leaseID)).toMatchObject({ ok: true });
  });
});

describe('cooldowns between shards', () => {
  const behind = (name: string) => entry(name, { egressIP: '192.0.2.1' });
  const shard = (number: number) => {
    const ledger = new Ledger({ shard: number, shards: 2 });
    const handover = { leftovers: [], tokenFloor: 0 };
    ledger.sync('c', { kind: 'full', upserts: [behind(nameIn(number, 2))] }, handover);
    return ledger;
  };

  it('wait for the others to hear of them, after a restart too', () => {
    const ledger = shard(0);
    const { leaseID } = ledger.granted({ target: 't' });
    ledger.report(leaseID, { result: 'banned' });
    ledger.restart();
    const rows = ledger.book.pendingCooldowns();
    expect(rows).toMatchObject([{ egress: 'ip 192.0.2.1', target: 't' }]);
    ledger.commit(ledger.book.cooldownsShared(rows, ledger.nowMs));
    expect(ledger.book.pendingCooldowns()).toEqual([]);
    ledger.restart();
    expect(ledger.book.pendingCooldowns()).toEqual([]);
    expect(ledger.refused({ target: 't' })).toMatchObject({ inCooldown: 1 });
  });

  it('are taken by the shards that have a proxy behind the address, and by no others', () => {
    const [one, other] = [shard(0), shard(1)];
    one.report(one.granted({ target: 't' }).leaseID, { result: 'banned' });
    const rows = one.book.pendingCooldowns();
    other.commit(other.book.cool(rows, other.nowMs));
    expect(other.refused({ target: 't' })).toMatchObject({ inCooldown: 1, retryAfterSeconds: 300 });
    other.commit(other.book.cool(rows, other.nowMs));
    expect(other.changes).toEqual([]);
    const elsewhere = rows.map((row) => ({ ...row, egress: 'ip 192.0.2.9' }));
    other.commit(other.book.cool(elsewhere, other.nowMs));
    expect(other.changes).toEqual([]);
  });

  it('are never shortened by another shard, and forgiven in all', () => {
    const [one, other] = [shard(0), shard(1)];
    one.report(one.granted({ target: 't' }).leaseID, { result: 'banned' });
    const [row] = one.book.pendingCooldowns();
    if (row === undefined) throw new Error('nothing pending');
    const long = { ...row, strikes: 2, untilMs: row.untilMs + 300_000 };
    other.commit(other.book.cool([long], other.nowMs));
    other.commit(other.book.cool([row], other.nowMs));
    expect(other.refused({ target: 't' })).toMatchObject({ retryAfterSeconds: 600 });
    const success = { egress: row.egress, target: 't', grantedMs: long.untilMs - 1 };
    other.commit(other.book.forgive([success], other.nowMs));
    expect(other.store.snapshot().cooldowns).toHaveLength(1);
    other.commit(other.book.forgive([{ ...success, grantedMs: long.untilMs }], other.nowMs));
    expect(other.store.snapshot().cooldowns).toEqual([]);
  });

  it('of an address that is about to be seen are taken as soon as it is asked about', () => {
    const ledger = shard(1);
    const late = { ...behind(nameIn(1, 2)), egressIP: '192.0.2.7' };
    const unknown = ledger.book.unknownEgresses('c', [late]);
    expect(unknown).toContain('ip 192.0.2.7');
    ledger.book.watch('c', unknown);
    const untilMs = ledger.nowMs + 60_000;
    const row = { egress: 'ip 192.0.2.7', target: 't', strikes: 1, untilMs, pending: false };
    ledger.commit(ledger.book.cool([row], ledger.nowMs));
    ledger.sync('c', { kind: 'delta', upserts: [late] });
    expect(ledger.refused({ target: 't' })).toMatchObject({ inCooldown: 1 });
    expect(ledger.book.unknownEgresses('c', [late])).toEqual([]);
  });

  it('a success is told to the others when it ended a doubling', () => {
    const ledger = shard(0);
    ledger.report(ledger.granted({ target: 't' }).leaseID, { result: 'banned' });
    ledger.advance(300);
    ledger.heartbeat();
    const { leaseID } = ledger.granted({ target: 't' });
    ledger.report(leaseID, { result: 'ok' });
    const told = { egress: 'ip 192.0.2.1', target: 't', grantedMs: ledger.nowMs };
    expect(ledger.book.takeForgiven()).toEqual([told]);
    expect(ledger.book.takeForgiven()).toEqual([]);
  });
});
