import { describe, expect, test } from 'vitest';
import { FINALIZER, SKIP_CLEANUP_ANNOTATION, SPEC_HASH_ANNOTATION } from '#shared/crd/names.ts';
import { managed, World } from './harness.ts';

async function running(spec: object = {}): Promise<World> {
  const world = new World(managed(spec));
  await world.settle();
  world.events.length = 0;
  world.provider.requests.length = 0;
  return world;
}

describe('deletion', () => {
  test('keeps the object until the machine is gone', async () => {
    const world = await running();
    world.delete();
    expect(await world.pass()).toEqual({ requeueAfterMs: 1000 });
    expect(world.status.phase).toBe('Deleting');
    expect(world.status.ip).toBeUndefined();
    expect(world.condition('Provisioned')).toBe('False/Deleting');
    expect(world.condition('Ready')).toBe('False/Deleting');
    await world.settle();
    expect(world.proxy).toBeUndefined();
    expect(world.provider.machines.size).toBe(0);
    expect(world.eventReasons).toEqual(['Deleting', 'Deleted']);
  });

  test('lets an object without our finalizer alone', async () => {
    const world = new World(managed({}, { finalizers: ['other/one'] }));
    world.delete();
    expect(await world.pass()).toEqual({});
    expect(world.writes).toEqual(['patchStatus']);
    expect(world.status.phase).toBe('Deleting');
  });

  test('of what was never made asks no provider', async () => {
    const world = new World(managed({}, { finalizers: [FINALIZER] }));
    world.providers = {};
    world.delete();
    await world.pass();
    expect(world.proxy).toBeUndefined();
    expect(world.provider.requests).toEqual([]);
  });

  test('of an intent without an id finds the machine that nobody recorded', async () => {
    const world = new World(managed());
    await world.crashAtStatus();
    expect(world.provider.made).toBe(1);
    world.delete();
    await world.settle();
    expect(world.proxy).toBeUndefined();
    expect(world.provider.machines.size).toBe(0);
  });

  test('with skip-cleanup releases the object and asks no provider', async () => {
    const world = await running();
    world.annotate({ ...world.proxy?.metadata.annotations, [SKIP_CLEANUP_ANNOTATION]: 'true' });
    world.delete();
    await world.pass();
    expect(world.proxy).toBeUndefined();
    expect(world.provider.machines.size).toBe(1);
    expect(world.provider.requests).toEqual([]);
    expect(world.eventReasons).toEqual(['CleanupSkipped']);
  });

  test('whose provider is gone from the configuration waits, and skip-cleanup frees it', async () => {
    const world = await running();
    world.providers = {};
    world.delete();
    expect(await world.pass()).toEqual({ requeueAfterMs: 300_000 });
    await world.pass();
    expect(world.condition('Provisioned')).toBe('False/Deleting');
    expect(world.status.conditions?.[0]?.message).toMatch(
      /is not in the providers file.*skip-cleanup/,
    );
    expect(world.eventReasons).toEqual(['CleanupFailed']);
    world.annotate({ [SKIP_CLEANUP_ANNOTATION]: 'true' });
    await world.pass();
    expect(world.proxy).toBeUndefined();
  });

  test.each(['Delete', 'Orphan'])('does not believe one odd NotFound (%s)', async (policy) => {
    const world = await running({ deletionPolicy: policy });
    world.provider.failNext('get', 'NotFound');
    world.delete();
    await world.settle();
    expect(world.proxy).toBeUndefined();
    const left = [...world.provider.machines.values()].map(({ disowned }) => disowned);
    expect(left).toEqual(policy === 'Orphan' ? [true] : []);
  });

  test('never gives up and never latches on a permanent failure', async () => {
    const world = await running();
    world.delete();
    world.provider.failNext('delete', 'Permanent', 3);
    for (let attempt = 0; attempt < 3; attempt++) await expect(world.pass()).rejects.toThrow();
    expect(world.proxy?.metadata.finalizers).toEqual([FINALIZER]);
    await world.settle();
    expect(world.proxy).toBeUndefined();
  });

  test('deletes and releases when get can never find the machine', async () => {
    const world = await running();
    world.delete();
    world.provider.failNext('get', 'Permanent');
    await world.pass();
    expect(world.provider.requests.map((each) => each.split(' ')[0])).toEqual(['get', 'delete']);
    expect(world.proxy).toBeUndefined();
  });

  test.each([
    ['Transient', undefined],
    ['QuotaExceeded', 300_000],
  ] as const)('holds on through a %s get', async (errorClass, requeueAfterMs) => {
    const world = await running();
    world.delete();
    world.provider.failNext('get', errorClass);
    if (requeueAfterMs === undefined) await expect(world.pass()).rejects.toThrow();
    else expect(await world.pass()).toEqual({ requeueAfterMs });
    expect(world.proxy).toBeDefined();
    await world.settle();
    expect(world.proxy).toBeUndefined();
  });

  test('goes on though a permanent failure had latched before', async () => {
    const world = new World(managed());
    world.provider.failNext('create', 'Permanent');
    await world.pass();
    expect(world.proxy?.metadata.annotations[SPEC_HASH_ANNOTATION]).toBeDefined();
    world.delete();
    await world.settle();
    expect(world.proxy).toBeUndefined();
  });
});
