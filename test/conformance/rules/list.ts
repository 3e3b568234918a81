/** List: all that carries the mark, nothing else, and an error rather than a part. */
import { expect } from 'vitest';
import { failure, INSTALLATION, markOf, type Rule } from '../world.ts';

export const LIST_RULES: readonly Rule[] = [
  {
    title: 'list gives what was created, as get shows it',
    async run(world) {
      const request = world.request();
      const id = await world.provider.create(request, world.signal);
      await world.running(id);
      const listed = (await world.listed(world.restarted())).get(id);
      const shown = await world.provider.get(id, world.signal);
      expect(listed).toMatchObject(markOf(request));
      expect(listed?.createdAtMs).toBe(shown.createdAtMs);
      expect(listed?.createdAtMs).toBeGreaterThan(0);
    },
  },
  {
    title: 'list leaves out what does not carry the mark',
    async run(world) {
      const id = await world.backend.makeUnmarked(world.request().name);
      expect((await world.listed()).has(id)).toBe(false);
    },
  },
  {
    title: 'list tells the machines of another installation by their mark',
    async run(world) {
      const theirs = { uid: 'uid-of-theirs', installation: 'another-installation' };
      const foreign = await world.backend.makeMarked(world.request().name, theirs);
      const ours = { uid: 'uid-of-ours', installation: INSTALLATION };
      const own = await world.backend.makeMarked(world.request().name, ours);
      const listed = await world.listed();
      expect(listed.get(foreign)).toMatchObject(theirs);
      expect(listed.get(own)).toMatchObject(ours);
    },
  },
  {
    title: 'list gives ids by which a machine can be deleted',
    async run(world) {
      const request = world.request();
      await world.provider.create(request, world.signal);
      const listed = [...(await world.listed()).values()];
      const { id } = listed.find(({ uid }) => uid === request.uid) ?? { id: '' };
      await world.restarted().delete(id, world.signal);
      await world.gone(id);
      expect(await world.backend.machines(request.name)).toEqual([]);
    },
  },
  {
    title: 'list through a backend that cannot be reached is an error, not an empty list',
    async run(world) {
      const refused = world.need(world.backend.refused, 'be cut off').call(world.backend);
      await failure(refused.listByTag(world.signal), 'Transient');
    },
  },
];
