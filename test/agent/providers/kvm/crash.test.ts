/** An agent that is killed at each of its calls to libvirt, before and after libvirt did it. */
import { describe, expect, test } from 'vitest';
import type { SessionHooks } from '#test/fakes/libvirt-host.ts';
import { request } from './block.ts';
import { ID, KvmWorld, signal } from './world.ts';

const ANOTHER = { ...request, name: 'proxy-qrstuvwxyzabcdef', uid: 'another' };
/** Longer than anything that was cut off is left alone. */
const LONG_MS = 600_000;

/** Nothing that a process does after its `at`-th call takes effect; nor that one, if `moment` is `before`. */
function killedAt(at: number, moment: 'before' | 'after'): SessionHooks {
  let calls = 0;
  return {
    before: () => {
      calls++;
      if (calls > at || (calls === at && moment === 'before')) throw new Error('killed');
    },
    after: () => {
      if (calls === at) throw new Error('killed');
    },
  };
}

async function callsOfOneLife(): Promise<number> {
  const world = new KvmWorld().serve();
  const provider = world.provider();
  await provider.create(request, signal);
  await world.running(provider);
  return world.host.calls.length;
}

/** Runs a process until it is killed, or has nothing more to do. */
async function runKilled(world: KvmWorld, at: number, moment: 'before' | 'after'): Promise<void> {
  const provider = world.provider(killedAt(at, moment));
  const id = await provider.create(request, signal).catch(() => undefined);
  for (let poll = 0; id !== undefined && poll < 20; poll++) {
    await provider.get(id, signal).catch(() => undefined);
    await world.pass(1000);
  }
}

const calls = await callsOfOneLife();
const kills = Array.from({ length: calls }, (_, index) => index + 1).flatMap((at) =>
  (['before', 'after'] as const).map((moment) => ({ at, moment })),
);

test('a life has calls enough for the kills below to mean something', () => {
  expect(calls).toBeGreaterThan(25);
});

describe.each(kills)('killed $moment call $at', ({ at, moment }) => {
  test('the next one makes one machine, and deleting it leaves nothing', async () => {
    const world = new KvmWorld().serve();
    await runKilled(world, at, moment);
    const next = world.provider();
    expect(await world.created(next)).toBe(ID);
    await world.running(next);
    expect([...world.host.domains.keys()]).toEqual([request.name]);
    expect(world.machineVolumes).toHaveLength(2);
    // What was cut off goes when it is certain that nobody writes it any more.
    await world.pass(LONG_MS);
    await world.created(next, ANOTHER);
    await world.running(next, ID.replace(request.name, ANOTHER.name));
    expect(world.imageVolumes).toHaveLength(2);
    for (const { id } of await next.listByTag(signal)) await next.delete(id, signal);
    expect(world.host.domains.size).toBe(0);
    expect(world.machineVolumes).toEqual([]);
  });

  test('whoever looks by the mark finds all that is there', async () => {
    const world = new KvmWorld().serve();
    await runKilled(world, at, moment);
    const next = world.provider();
    for (const { id, uid, installation } of await next.listByTag(signal)) {
      expect({ uid, installation }).toEqual({
        uid: request.uid,
        installation: request.installation,
      });
      await next.delete(id, signal);
    }
    expect(world.host.domains.size).toBe(0);
    expect(world.machineVolumes).toEqual([]);
  });
});

describe('killed while it deletes', () => {
  const deletion = ['domainByName', 'domainXml', 'setDomainMetadata', 'destroyDomain'];
  const steps = Array.from({ length: deletion.length + 7 }, (_, index) => index + 1);

  test.each(steps.flatMap((at) => [[at, 'before'] as const, [at, 'after'] as const]))(
    'at call %i, %s: the machine never comes up again, and goes in the end',
    async (at, moment) => {
      const world = new KvmWorld().serve();
      const first = world.provider();
      await first.create(request, signal);
      await world.running(first);
      await world
        .provider(killedAt(at, moment))
        .delete(ID, signal)
        .catch(() => undefined);
      const next = world.provider();
      const seen = await next.get(ID, signal).catch(() => undefined);
      if (at > deletion.indexOf('setDomainMetadata') + 1) expect(seen?.state).not.toBe('Running');
      await world.pass(LONG_MS);
      await next.delete(ID, signal);
      expect(world.host.domains.size).toBe(0);
      expect(world.machineVolumes).toEqual([]);
    },
  );
});

describe('another process that deletes the machine', () => {
  test.each(kills)(
    '$moment call $at of the one that makes it leaves nothing, or a whole machine',
    async ({ at, moment }) => {
      const world = new KvmWorld().serve();
      const other = world.provider();
      let calls = 0;
      const deletes = async (now: 'before' | 'after') => {
        if (now === 'before') calls++;
        if (calls === at && now === moment) await other.delete(ID, signal);
      };
      const maker = world.provider({
        before: () => deletes('before'),
        after: () => deletes('after'),
      });
      await maker.create(request, signal).catch(() => undefined);
      for (let poll = 0; poll < 20; poll++) {
        await maker.get(ID, signal).catch(() => undefined);
        await world.pass(1000);
      }
      if (world.host.domains.size === 0) expect(world.machineVolumes).toEqual([]);
      else {
        await world.running(maker);
        expect(world.machineVolumes).toHaveLength(2);
      }
    },
  );
});
