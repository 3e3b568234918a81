/** Delete and disown: all of a machine goes, or all of it stays and is nobody's. */
import { expect } from 'vitest';
import { failure, type Rule } from '../world.ts';

export const DELETE_RULES: readonly Rule[] = [
  {
    title: 'delete can be repeated, while the machine goes and after it is gone',
    async run(world) {
      const request = world.request();
      const id = await world.provider.create(request, world.signal);
      await world.provider.delete(id, world.signal);
      await world.provider.delete(id, world.signal);
      await world.restarted().delete(id, world.signal);
      await world.gone(id);
      await world.provider.delete(id, world.signal);
      expect(await world.backend.machines(request.name)).toEqual([]);
    },
  },
  {
    title: 'delete of a machine whose deletion takes long can be repeated',
    async run(world) {
      const hold = world.need(world.backend.holdDeletion, 'hold a deletion');
      const id = await world.provider.create(world.request(), world.signal);
      const release = await hold.call(world.backend, id);
      for (let poll = 0; poll < 3; poll++) await world.provider.delete(id, world.signal);
      await release();
      await world.gone(id);
    },
  },
  {
    title: 'delete of what never was is fine',
    run: (world) => world.provider.delete(world.backend.idOf(world.request().name), world.signal),
  },
  {
    title: 'delete removes all that create made',
    async run(world) {
      const request = world.request();
      const id = await world.provider.create(request, world.signal);
      await world.running(id);
      await world.provider.delete(id, world.signal);
      await world.gone(id);
      await world.settles(async () => {
        expect(await world.backend.secondary(request.name)).toEqual([]);
      });
    },
  },
  {
    title: 'delete takes the one machine and leaves its neighbour running',
    async run(world) {
      const ids = [
        await world.provider.create(world.request(), world.signal),
        await world.provider.create(world.request(), world.signal),
      ] as const;
      await world.running(ids[1]);
      await world.provider.delete(ids[0], world.signal);
      await world.gone(ids[0]);
      expect((await world.provider.get(ids[1], world.signal)).state).toBe('Running');
    },
  },
  {
    title: 'disown takes the mark off and leaves the machine running',
    async run(world) {
      const request = world.request();
      const id = await world.provider.create(request, world.signal);
      const before = await world.running(id);
      await world.provider.disown(id, world.signal);
      expect((await world.listed()).has(id)).toBe(false);
      const after = await world.restarted().get(id, world.signal);
      expect(after).toMatchObject({ state: 'Running', ip: before.ip, uid: '', installation: '' });
      await failure(world.provider.create(request, world.signal), 'Permanent');
      expect(await world.backend.machines(request.name)).toHaveLength(1);
    },
  },
  {
    title: 'disown can be repeated, and of what is gone or never was it is fine',
    async run(world) {
      const id = await world.provider.create(world.request(), world.signal);
      await world.provider.disown(id, world.signal);
      await world.provider.disown(id, world.signal);
      await world.restarted().disown(id, world.signal);
      await world.provider.disown(world.backend.idOf(world.request().name), world.signal);
    },
  },
];
