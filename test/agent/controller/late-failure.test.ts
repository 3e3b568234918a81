/** A create that was accepted and failed later: the reason is told, and the machine made anew. */
import { describe, expect, test } from 'vitest';
import { managed, World } from './harness.ts';

const QUOTA_RETRY_MS = 300_000;

async function worldWith(...failures: World['provider']['lateFailures']): Promise<World> {
  const world = new World(managed());
  world.provider.lateFailures.push(...failures);
  await world.pass();
  await world.pass();
  return world;
}

describe('a machine that never came to be', () => {
  test('for want of quota is waited for, and made once there is some', async () => {
    const world = new World(managed());
    world.provider.lateFailures.push('QuotaExceeded');
    await world.pass();
    const { requeueAfterMs } = await world.pass();
    expect(requeueAfterMs).toBe(QUOTA_RETRY_MS);
    expect(world.condition('Provisioned')).toBe('False/QuotaExceeded');
    expect(world.message('Provisioned')).toContain('QuotaExceeded for zones/a/');
    expect(world.status).not.toHaveProperty('providerID');
    expect(world.eventReasons).not.toContain('Replacing');
    await world.clock.advance(QUOTA_RETRY_MS);
    await world.settle();
    expect(world.condition('Provisioned')).toBe('True/Created');
    expect(world.provider.made).toBe(1);
  });

  test('is not asked for again before the wait is over, whatever wakes the Proxy', async () => {
    const world = await worldWith('QuotaExceeded');
    const before = world.provider.requests.length;
    await world.clock.advance(1_000);
    await world.pass();
    expect(world.provider.requests.slice(before)).toEqual([]);
  });

  test('for good is latched until the spec is edited', async () => {
    const world = await worldWith('Permanent');
    expect(world.condition('Provisioned')).toBe('False/PermanentError');
    const before = world.provider.requests.length;
    await world.passes(3);
    expect(world.provider.requests.length).toBe(before);
    world.edit({ placement: { zone: 'b' } });
    await world.settle();
    expect(world.provider.only.id).toContain('zones/b/');
    expect(world.provider.made).toBe(1);
  });

  test('for a passing reason is made by the next try', async () => {
    const world = new World(managed());
    world.provider.lateFailures.push('Transient');
    await world.pass();
    await expect(world.pass()).rejects.toMatchObject({ class: 'Transient', neverMade: true });
    await world.clock.advance(1_000);
    await world.settle();
    expect(world.provider.made).toBe(1);
  });

  test('keeps neither an edit nor a deletion from going on', async () => {
    const edited = new World(managed());
    edited.provider.lateFailures.push('QuotaExceeded');
    await edited.pass();
    edited.edit({ placement: { zone: 'b' } });
    await edited.settle();
    expect(edited.provider.only.id).toContain('zones/b/');

    const deleted = new World(managed());
    deleted.provider.lateFailures.push('QuotaExceeded');
    await deleted.pass();
    deleted.delete();
    for (let pass = 0; pass < 5 && deleted.proxy !== undefined; pass++) await deleted.passes(1);
    expect(deleted.proxy).toBeUndefined();
    expect(deleted.provider.made).toBe(0);
  });
});

describe('a list that lacks a zone', () => {
  test('is no proof that there is no machine: an unrecorded one is not let go', async () => {
    const world = new World(managed());
    await world.crashAtStatus();
    world.provider.unread.add('a');
    world.restart();
    world.delete();
    await expect(world.pass()).rejects.toMatchObject({ class: 'Transient', op: 'list' });
    expect(world.proxy).toBeDefined();
    world.provider.unread.clear();
    for (let pass = 0; pass < 8 && world.proxy !== undefined; pass++) await world.passes(1);
    expect(world.proxy).toBeUndefined();
    expect(world.provider.machines.size).toBe(0);
  });

  test('is no reason to make another machine, either', async () => {
    const world = new World(managed());
    await world.crashAtStatus();
    world.provider.unread.add('a');
    world.restart();
    world.edit({ placement: { zone: 'b' } });
    await expect(world.pass()).rejects.toMatchObject({ class: 'Transient', op: 'list' });
    expect(world.provider.made).toBe(1);
  });

  test('serves when the machine is in the part that was read', async () => {
    const world = new World(managed());
    await world.crashAtStatus();
    world.provider.unread.add('elsewhere');
    world.restart();
    world.delete();
    for (let pass = 0; pass < 8 && world.proxy !== undefined; pass++) await world.passes(1);
    expect(world.proxy).toBeUndefined();
    expect(world.provider.machines.size).toBe(0);
  });
});
