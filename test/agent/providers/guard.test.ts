import { expect, test } from 'vitest';
import { guard } from '#agent/providers/guard.ts';
import { MemoryProvider } from '#test/fakes/memory-provider.ts';
import { request } from './kubernetes/block.ts';

const { signal } = new AbortController();

test('whoever leads passes, and whoever does not changes nothing', async () => {
  const provider = new MemoryProvider();
  let isHeld = true;
  const guarded = guard(provider, {
    assertHeld() {
      if (!isHeld) throw new Error('not the leader');
    },
  });
  const id = await guarded.create(request, signal);
  isHeld = false;
  const before = [...provider.requests];
  for (const call of [
    () => guarded.create({ ...request, name: 'other' }, signal),
    () => guarded.delete(id, signal),
    () => guarded.disown(id, signal),
  ]) {
    await expect(call()).rejects.toThrow('not the leader');
  }
  expect(provider.requests).toEqual(before);
  expect(await guarded.get(id, signal)).toMatchObject({ id });
  expect(await guarded.listByTag(signal)).toHaveLength(1);
  isHeld = true;
  await guarded.disown(id, signal);
  await guarded.delete(id, signal);
  expect(provider.machines.get(id)?.goesIn).toBeDefined();
});
