/** Get: what is there is shown as it is, and gone is said only of what is gone. */
import { expect } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { failure, INSTALLATION, markOf, type Rule, type World } from '../world.ts';

/** Clocks of backends differ, and some of them count in whole seconds. */
const CLOCK_SKEW_MS_MAX = 120_000;

export const GET_RULES: readonly Rule[] = [
  {
    title: 'get shows a new machine as Provisioning until it is Running with an address',
    async run(world) {
      const id = await world.provider.create(world.request(), world.signal);
      const first = await world.provider.get(id, world.signal);
      expect(['Provisioning', 'Running']).toContain(first.state);
      const running = await world.running(id);
      expect(running.id).toBe(id);
      expect(running.ip).toMatch(/^[0-9a-f.:]+$/i);
    },
  },
  {
    title: 'get reads mark and time of creation back from the backend',
    async run(world) {
      const request = world.request();
      const startedMs = systemClock.now();
      const id = await world.provider.create(request, world.signal);
      const instance = await world.restarted().get(id, world.signal);
      expect(instance).toMatchObject(markOf(request));
      expect(Math.abs(instance.createdAtMs - startedMs)).toBeLessThan(CLOCK_SKEW_MS_MAX);
      const later = await world.running(id);
      expect(later.createdAtMs).toBe(instance.createdAtMs);
    },
  },
  {
    title: 'get tells another installation by its mark, and none by an empty one',
    async run(world) {
      const { name } = world.request();
      const theirs = { uid: 'another-uid', installation: 'another-installation' };
      const marked = await world.backend.makeMarked(name, theirs);
      expect(await world.provider.get(marked, world.signal)).toMatchObject(theirs);
      const unmarked = await world.backend.makeUnmarked(world.request().name);
      const { uid, installation } = await world.provider.get(unmarked, world.signal);
      expect({ uid, installation }).toEqual({ uid: '', installation: '' });
    },
  },
  {
    title: 'get of what never was is NotFound',
    async run(world) {
      const id = world.backend.idOf(world.request().name);
      await failure(world.provider.get(id, world.signal), 'NotFound');
    },
  },
  {
    title: 'get goes on showing a machine while it is being deleted, and not as Running',
    async run(world) {
      const hold = world.need(world.backend.holdDeletion, 'hold a deletion');
      const id = await world.provider.create(world.request(), world.signal);
      await world.running(id);
      const release = await hold.call(world.backend, id);
      await world.provider.delete(id, world.signal);
      for (let poll = 0; poll < 3; poll++) {
        const instance = await world.provider.get(id, world.signal);
        expect(instance.id).toBe(id);
        expect(instance.state).not.toBe('Running');
      }
      await release();
      await world.gone(id);
    },
  },
  {
    title: 'get says NotFound only once the machine is gone and its name is free',
    async run(world) {
      const request = world.request();
      const id = await world.provider.create(request, world.signal);
      await world.running(id);
      await world.provider.delete(id, world.signal);
      for (const { state } of await world.gone(id)) expect(state).not.toBe('Running');
      expect(await world.backend.machines(request.name)).toEqual([]);
      const next = await world.provider.create(request, world.signal);
      await world.running(next);
      expect(await world.backend.machines(request.name)).toHaveLength(1);
    },
  },
  {
    title: 'get calls a state that it does not know Stopped, and tells its name',
    async run(world) {
      const make = world.need(world.backend.makeUnknown, 'make a state that nobody knows');
      const mark = { uid: 'uid-of-unknown', installation: INSTALLATION };
      const { id, word } = await make.call(world.backend, world.request().name, mark);
      const instance = await world.provider.get(id, world.signal);
      expect(instance.state).toBe('Stopped');
      expect(instance.detail).toContain(word);
    },
  },
  {
    title: 'get through a backend that cannot be reached is Transient, never NotFound',
    async run(world) {
      const id = await world.provider.create(world.request(), world.signal);
      await failure(unreachable(world).get(id, world.signal), 'Transient');
    },
  },
];

function unreachable(world: World) {
  return world.need(world.backend.refused, 'be cut off').call(world.backend);
}
