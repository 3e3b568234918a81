/** Create: one machine for one Proxy, whatever is repeated, lost or in the way. */
import { expect } from 'vitest';
import type { CreateRequest } from '#agent/providers/provider.ts';
import { failure, INSTALLATION, markOf, type Rule, type World } from '../world.ts';

const CONCURRENT = 6;

export const CREATE_RULES: readonly Rule[] = [
  {
    title: 'create repeated gives the same id and makes one machine',
    async run(world) {
      const request = world.request();
      const id = await world.provider.create(request, world.signal);
      expect(await world.provider.create(request, world.signal)).toBe(id);
      await world.running(id);
      expect(await world.provider.create(request, world.signal)).toBe(id);
      expect(await world.backend.machines(request.name)).toHaveLength(1);
    },
  },
  {
    title: 'create at the same time, by two agents, makes one machine',
    async run(world) {
      const request = world.request();
      const providers = [world.provider, world.restarted()];
      const calls = Array.from({ length: CONCURRENT }, (_, at) =>
        providers[at % providers.length]?.create(request, world.signal),
      );
      const ends = await Promise.allSettled(calls);
      const id = await world.provider.create(request, world.signal);
      for (const end of ends) {
        if (end.status === 'fulfilled') expect(end.value).toBe(id);
        else expect(end.reason).toMatchObject({ class: 'Transient' });
      }
      expect(ends.some(({ status }) => status === 'fulfilled')).toBe(true);
      expect(await world.backend.machines(request.name)).toHaveLength(1);
    },
  },
  {
    title: 'create after a crash that lost its answer finds the machine',
    async run(world) {
      const request = world.request();
      const id = await world.provider.create(request, world.signal);
      const before = await world.running(id);
      const after = world.restarted();
      expect(await after.create(request, world.signal)).toBe(id);
      expect(await after.get(id, world.signal)).toMatchObject({
        ip: before.ip,
        createdAtMs: before.createdAtMs,
      });
      expect(await world.backend.machines(request.name)).toHaveLength(1);
    },
  },
  {
    title: 'create makes a machine of its own for each Proxy',
    async run(world) {
      const requests = [world.request(), world.request()];
      const ids = await Promise.all(
        requests.map((request) => world.provider.create(request, world.signal)),
      );
      expect(new Set(ids).size).toBe(2);
      for (const { name } of requests) expect(await world.backend.machines(name)).toHaveLength(1);
    },
  },
  {
    title: 'create writes the mark together with the machine',
    async run(world) {
      const request = world.request();
      const id = await world.provider.create(request, world.signal);
      const listed = await world.listed(world.restarted());
      expect(listed.get(id)).toMatchObject(markOf(request));
    },
  },
  {
    title: 'create leaves an unmarked machine under its name alone',
    run: (world) => isRefused(world, ({ name }) => world.backend.makeUnmarked(name)),
  },
  {
    title: 'create leaves the machine of another Proxy under its name alone',
    run: (world) =>
      isRefused(world, ({ name }) =>
        world.backend.makeMarked(name, { uid: 'another-uid', installation: INSTALLATION }),
      ),
  },
  {
    title: 'create leaves the machine of another installation under its name alone',
    run: (world) =>
      isRefused(world, ({ name, uid }) =>
        world.backend.makeMarked(name, { uid, installation: 'another-installation' }),
      ),
  },
  {
    title: 'create beside a machine that is being deleted makes no second one',
    async run(world) {
      const hold = world.need(world.backend.holdDeletion, 'hold a deletion');
      const request = world.request();
      const id = await world.provider.create(request, world.signal);
      const release = await hold.call(world.backend, id);
      await world.provider.delete(id, world.signal);
      const again = await Promise.allSettled([world.provider.create(request, world.signal)]);
      if (again[0]?.status === 'rejected') {
        expect(again[0].reason).toMatchObject({ class: 'Transient' });
      }
      expect(await world.backend.machines(request.name)).toHaveLength(1);
      await release();
      await world.gone(id);
    },
  },
  {
    title: 'create without quota says QuotaExceeded and makes nothing',
    async run(world) {
      const exhausted = world.need(world.backend.exhausted, 'use up its quota');
      const request = world.request();
      const provider = exhausted.call(world.backend);
      await failure(provider.create(request, world.signal), 'QuotaExceeded');
      expect(await world.backend.machines(request.name)).toEqual([]);
    },
  },
];

/** Create fails for good, and what is in its way is as it was. */
async function isRefused(
  world: World,
  occupy: (request: CreateRequest) => Promise<string>,
): Promise<void> {
  const request = world.request();
  await occupy(request);
  const before = await world.backend.machines(request.name);
  expect(before).toHaveLength(1);
  await failure(world.provider.create(request, world.signal), 'Permanent');
  await failure(world.restarted().create(request, world.signal), 'Permanent');
  expect(await world.backend.machines(request.name)).toEqual(before);
}
