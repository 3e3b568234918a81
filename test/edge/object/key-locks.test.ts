import { describe, expect, it } from 'vitest';
import { KeyLocks } from '#edge/object/key-locks.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';

function world() {
  const clock = new FakeClock();
  const locks = new KeyLocks(clock);
  const held: string[] = [];
  const take = (owner: string, key = 'k') =>
    void locks.take(key, owner, 1_000).then(() => held.push(`${key} ${owner}`));
  return { clock, locks, held, take };
}

describe('the lock of a key', () => {
  it('is had by one at a time, in the order of asking', async () => {
    const { locks, held, take } = world();
    for (const owner of ['a', 'b', 'c']) take(owner);
    await settle();
    expect(held).toEqual(['k a']);
    locks.release('k', 'a');
    await settle();
    expect(held).toEqual(['k a', 'k b']);
    locks.release('k', 'a');
    await settle();
    expect(held).toHaveLength(2);
    locks.release('k', 'b');
    await settle();
    expect(held).toEqual(['k a', 'k b', 'k c']);
  });

  it('is no other key’s', async () => {
    const { held, take } = world();
    take('a');
    take('b', 'other');
    await settle();
    expect(held).toEqual(['k a', 'other b']);
  });

  it('is had already by the same request when that is repeated', async () => {
    const { held, take } = world();
    take('a');
    take('a');
    await settle();
    expect(held).toEqual(['k a', 'k a']);
  });

  it('ends when nothing more is heard of its owner, and leaves nothing behind', async () => {
    const { clock, locks, held, take } = world();
    take('a');
    take('b');
    await clock.advance(999);
    expect(held).toEqual(['k a']);
    await clock.advance(1);
    expect(held).toEqual(['k a', 'k b']);
    locks.release('k', 'b');
    expect(clock.pendingTimers).toBe(0);
  });
});
