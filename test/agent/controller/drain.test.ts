/** Machines in use are waited for, no longer than asked, and only if somebody can be on them. */
import { describe, expect, test } from 'vitest';
import { SKIP_CLEANUP_ANNOTATION } from '#shared/crd/names.ts';
import { machineIdentity } from '#shared/crd/proxy-status.ts';
import { managed, World } from './harness.ts';

/** A Ready proxy with two leases on it. */
async function inUse(spec: object = {}): Promise<World> {
  const world = new World(managed({ drainSeconds: 60, ...spec }));
  await world.settle();
  world.healthy();
  await world.pass();
  world.leases = 2;
  world.events.length = 0;
  world.writes.length = 0;
  world.provider.requests.length = 0;
  return world;
}

const destroyed = (world: World) =>
  world.provider.requests.some((each) => each.startsWith('delete'));

const reasons = [
  ['Replacement', (world: World) => world.edit({ port: 9000 })],
  ['Deletion', (world: World) => world.delete()],
] as const;

describe.each(reasons)('a drain before a %s', (reason, ask) => {
  test('leaves all but the phase as it was, and tells what it waits for', async () => {
    const world = await inUse();
    const { ip, port } = world.status;
    const identity = machineIdentity(world.status);
    ask(world);
    expect(await world.pass()).toEqual({ requeueAfterMs: 1000 });
    expect(world.status).toMatchObject({ phase: 'Draining', ip, port, egressIP: '198.51.100.7' });
    expect(machineIdentity(world.status)).toBe(identity);
    expect(world.condition('Draining')).toBe(`True/${reason}`);
    expect(world.condition('Provisioned')).toBe('True/Created');
    expect(world.condition('Healthy')).toBe('True/Healthy');
    expect(world.condition('Ready')).toBe('False/Draining');
    expect(world.message('Draining')).toMatch(
      /the edge has not confirmed the cordon yet; waiting until 2026-01-01T00:01:0\d.000Z/,
    );
    await world.clock.advance(1000);
    await world.pass();
    expect(world.message('Draining')).toMatch(/^2 leases are left; waiting until/);
    expect(destroyed(world)).toBe(false);
    expect(world.eventReasons).toEqual(['Draining']);
  });

  test('ends with the last lease', async () => {
    const world = await inUse();
    ask(world);
    await world.passes(4);
    world.leases = 0;
    await world.pass();
    expect(world.condition('Draining')).toBeUndefined();
    expect(world.status.ip).toBeUndefined();
    expect(destroyed(world)).toBe(true);
    expect(world.eventReasons.slice(0, 2)).toEqual(['Draining', 'Drained']);
  });

  test.each([
    ['leases are left', 1, /60 s are over; 1 lease is left/],
    ['the edge is away', undefined, /60 s are over; the edge has not confirmed/],
  ])('ends on time though %s', async (_why, leases, note) => {
    const world = await inUse();
    world.leases = leases;
    const startMs = world.clock.now();
    ask(world);
    for (;;) {
      const { requeueAfterMs } = await world.pass();
      if (destroyed(world)) break;
      await world.clock.advance(requeueAfterMs ?? 0);
    }
    expect(world.clock.now() - startMs).toBe(60_000);
    expect(world.events[1]).toMatchObject({ reason: 'DrainTimedOut', type: 'Warning' });
    expect(world.events[1]?.note).toMatch(note);
  });

  test('does not believe that nobody is there before the cordon could be seen', async () => {
    const world = await inUse();
    world.leases = 0;
    ask(world);
    await world.pass();
    expect(destroyed(world)).toBe(false);
    await world.clock.advance(1000);
    await world.pass();
    expect(destroyed(world)).toBe(true);
  });

  test('writes the status when the number of leases changes, and not at each poll', async () => {
    const world = await inUse();
    ask(world);
    await world.passes(5);
    expect(world.writes).toEqual(['patchStatus', 'patchStatus']);
    world.leases = 1;
    await world.passes(3);
    expect(world.writes).toHaveLength(3);
  });

  test('goes on where it was after a restart of the agent', async () => {
    const world = await inUse();
    ask(world);
    await world.pass();
    await world.clock.advance(40_000);
    world.restart();
    await world.pass();
    expect(world.status.phase).toBe('Draining');
    await world.clock.advance(20_000);
    await world.pass();
    expect(destroyed(world)).toBe(true);
    expect(world.eventReasons.slice(0, 2)).toEqual(['Draining', 'DrainTimedOut']);
  });

  test('is not begun anew when the destruction fails, and told to have ended once', async () => {
    const world = await inUse();
    ask(world);
    await world.passes(2);
    world.leases = 0;
    world.provider.failNext('delete', 'Transient', 2);
    for (let attempt = 0; attempt < 2; attempt++) await expect(world.pass()).rejects.toThrow();
    await world.pass();
    expect(world.provider.requests.filter((each) => each.startsWith('delete'))).toHaveLength(3);
    const ends = world.eventReasons.filter((each) => each === 'Drained');
    expect(ends).toEqual(['Drained']);
  });

  test('is skipped for a machine that is dead, and for one that is gone', async () => {
    const world = await inUse();
    world.provider.only.forced = 'Terminated';
    ask(world);
    await world.pass();
    expect(destroyed(world)).toBe(true);
    const other = await inUse();
    other.provider.machines.clear();
    ask(other);
    await other.settle();
    expect([...world.eventReasons, ...other.eventReasons]).not.toContain('Draining');
  });

  test('is skipped for a machine that never ran', async () => {
    const world = new World(managed({ drainSeconds: 60 }));
    await world.pass();
    world.leases = undefined;
    ask(world);
    await world.pass();
    expect(destroyed(world)).toBe(true);
    expect(world.condition('Draining')).toBeUndefined();
  });

  test('is cut short by the death of the machine, seen twice', async () => {
    const world = await inUse();
    ask(world);
    await world.passes(2);
    world.provider.only.forced = 'Stopped';
    expect(await world.pass()).toEqual({ requeueAfterMs: 1000 });
    expect(world.status.phase).toBe('Draining');
    expect(world.condition('Healthy')).toBe('False/InstanceStopped');
    expect(destroyed(world)).toBe(false);
    await world.clock.advance(1000);
    await world.pass();
    expect(destroyed(world)).toBe(true);
    expect(world.eventReasons).not.toContain('DrainTimedOut');
  });

  test('outlives one odd answer', async () => {
    const world = await inUse();
    ask(world);
    await world.passes(2);
    world.provider.only.forced = 'Stopped';
    await world.passes(1);
    delete world.provider.only.forced;
    await world.passes(2);
    expect(world.status.phase).toBe('Draining');
    expect(destroyed(world)).toBe(false);
  });

  test('holds while the object is paused', async () => {
    const world = await inUse();
    ask(world);
    await world.pass();
    world.edit({ paused: true });
    await world.clock.advance(120_000);
    await world.passes(3);
    expect(destroyed(world)).toBe(false);
    expect(world.status.phase).toBe('Draining');
    expect(world.message('Ready')).toMatch(/^paused/);
    world.edit({ paused: false });
    await world.pass();
    expect(destroyed(world)).toBe(true);
  });

  test('ends when its time is taken away', async () => {
    const world = await inUse();
    ask(world);
    await world.passes(2);
    world.edit({ drainSeconds: 0 });
    await world.pass();
    expect(destroyed(world)).toBe(true);
  });
});

test('the deletion of a proxy that drains for a replacement goes on with the same clock', async () => {
  const world = await inUse();
  world.edit({ port: 9000 });
  await world.pass();
  await world.clock.advance(50_000);
  world.delete();
  await world.pass();
  expect(world.condition('Draining')).toBe('True/Deletion');
  await world.clock.advance(10_000);
  await world.pass();
  expect(destroyed(world)).toBe(true);
  await world.settle();
  expect(world.proxy).toBeUndefined();
  expect(world.eventReasons).toEqual(['Draining', 'DrainTimedOut', 'Deleting', 'Deleted']);
});

test('a proxy whose spec is put back is Ready again, with the same machine', async () => {
  const world = await inUse();
  const identity = machineIdentity(world.status);
  world.edit({ port: 9000 });
  await world.passes(2);
  world.edit({ port: 3128 });
  await world.pass();
  expect(world.status.phase).toBe('Ready');
  expect(world.condition('Draining')).toBeUndefined();
  expect(machineIdentity(world.status)).toBe(identity);
  expect(destroyed(world)).toBe(false);
  expect(world.eventReasons).toEqual(['Draining', 'DrainCancelled']);
});

test('a machine that is said to start again may be in use, and is cordoned too', async () => {
  const world = await inUse();
  world.provider.only.forced = 'Provisioning';
  await world.pass();
  world.edit({ port: 9000 });
  await world.passes(2);
  expect(world.status.phase).toBe('Draining');
  expect(destroyed(world)).toBe(false);
});

test('a replacement without drainSeconds does not wait', async () => {
  const world = await inUse({ drainSeconds: 0 });
  world.edit({ port: 9000 });
  await world.pass();
  expect(destroyed(world)).toBe(true);
});

test.each(['Transient', 'QuotaExceeded', 'Permanent'] as const)(
  'a deletion waits for leases though the machine cannot be looked at (%s)',
  async (errorClass) => {
    const world = await inUse();
    const identity = machineIdentity(world.status);
    world.provider.failNext('get', errorClass, 1000);
    world.delete();
    await world.passes(5);
    expect(world.status.phase).toBe('Draining');
    expect(machineIdentity(world.status)).toBe(identity);
    expect(destroyed(world)).toBe(false);
    world.leases = 0;
    await world.pass().catch(() => {});
    await world.clock.advance(1000);
    await world.pass().catch(() => {});
    if (errorClass === 'Permanent') expect(world.proxy).toBeUndefined();
    else expect(world.message('Provisioned')).toMatch(/cleanup fails/);
  },
);

test('a permanent failure lifts the cordon instead of leaving it for ever', async () => {
  const world = await inUse();
  world.edit({ port: 9000 });
  await world.passes(2);
  world.leases = 0;
  world.provider.failNext('delete', 'Permanent');
  await world.pass();
  expect(world.status.phase).toBe('Failed');
  expect(world.condition('Draining')).toBeUndefined();
});

test('skip-cleanup and Orphan do not wait: they destroy nothing', async () => {
  const skipped = await inUse();
  skipped.delete();
  await skipped.pass();
  skipped.annotate({ [SKIP_CLEANUP_ANNOTATION]: 'true' });
  await skipped.pass();
  expect(skipped.proxy).toBeUndefined();
  const orphan = await inUse({ deletionPolicy: 'Orphan' });
  orphan.delete();
  await orphan.pass();
  expect(orphan.proxy).toBeUndefined();
  expect(destroyed(skipped) || destroyed(orphan)).toBe(false);
});
