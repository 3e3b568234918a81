/** What is not ours is not touched, and what is let go is nobody's before its object is gone. */
import { describe, expect, test } from 'vitest';
import { FINALIZER, SKIP_CLEANUP_ANNOTATION } from '#shared/crd/names.ts';
import { managed, World } from './harness.ts';

async function running(spec: object = {}): Promise<World> {
  const world = new World(managed(spec));
  await world.settle();
  world.healthy();
  await world.pass();
  world.events.length = 0;
  world.provider.requests.length = 0;
  return world;
}

const changes = (world: World) =>
  world.provider.requests.filter((each) => !each.startsWith('get') && each !== 'list');

describe('a machine under our id that is not ours', () => {
  test.each([
    ['another Proxy', { uid: 'uid-2' }, /Proxy uid-2 \(crawl\/one\); it is left alone/],
    ['another installation', { installation: 'there' }, /of installation "there"/],
    ['nobody', { uid: '', installation: '' }, /carries no mark/],
  ])('but of %s is neither used nor deleted, and a person is told', async (_who, mark, text) => {
    const world = await running();
    world.remark(mark);
    expect(await world.pass()).toEqual({});
    expect(world.status.phase).toBe('Failed');
    expect(world.status.ip).toBeUndefined();
    expect(world.condition('Provisioned')).toBe('False/PermanentError');
    expect(world.message('Provisioned')).toMatch(text);
    expect(world.eventReasons).toEqual(['PermanentError']);
    world.edit({ port: 9000 });
    await world.passes(3);
    expect(world.status.phase).toBe('Failed');
    expect(changes(world)).toEqual([]);
  });

  test.each(['Delete', 'Orphan'])('counts as gone when ours is deleted (%s)', async (policy) => {
    const world = await running({ deletionPolicy: policy });
    world.remark({ uid: 'uid-2' });
    world.delete();
    await world.pass();
    expect(world.proxy).toBeUndefined();
    expect(changes(world)).toEqual([]);
    expect(world.events.at(-1)?.note).toMatch(/of this Proxy is gone.*uid-2.*left alone/);
  });

  test('is not mistaken for one that nobody recorded', async () => {
    const world = new World(managed());
    await world.crashAtStatus();
    world.remark({ installation: 'there' });
    world.delete();
    await world.pass();
    expect(world.proxy).toBeUndefined();
    expect(changes(world).map((each) => each.split(' ')[0])).toEqual(['create']);
    expect(world.provider.machines.size).toBe(1);
  });
});

describe('deletionPolicy Orphan', () => {
  test('takes the mark off before it lets the object go', async () => {
    const world = await running({ deletionPolicy: 'Orphan' });
    const order: string[] = [];
    world.around = (what, call) => {
      order.push(what);
      return call();
    };
    world.delete();
    await world.pass();
    expect(order).toEqual(['get', 'disown', 'removeFinalizer']);
    expect(world.proxy).toBeUndefined();
    expect(world.provider.only).toMatchObject({ disowned: true });
    expect(world.eventReasons).toEqual(['Orphaned']);
  });

  test('disowns a machine that nobody recorded as well', async () => {
    const world = new World(managed({ deletionPolicy: 'Orphan' }));
    world.around = (what, call) => {
      if (what === 'patchStatus') throw new Error('crash');
      return call();
    };
    await expect(world.pass()).rejects.toThrow('crash');
    world.around = (_what, call) => call();
    world.delete();
    await world.pass();
    expect(world.proxy).toBeUndefined();
    expect(world.provider.only.disowned).toBe(true);
  });

  test('of a machine that is gone, or was never made, releases', async () => {
    const world = await running({ deletionPolicy: 'Orphan' });
    world.provider.machines.clear();
    world.delete();
    await world.passes(2);
    expect(world.proxy).toBeUndefined();
    const bare = new World(managed({ deletionPolicy: 'Orphan' }, { finalizers: [FINALIZER] }));
    bare.providers = {};
    bare.delete();
    await bare.pass();
    expect(bare.proxy).toBeUndefined();
  });

  test.each([
    ['Transient', undefined],
    ['Permanent', undefined],
    ['QuotaExceeded', 300_000],
  ] as const)('holds on, visibly, when disowning fails: %s', async (errorClass, requeueAfterMs) => {
    const world = await running({ deletionPolicy: 'Orphan' });
    world.delete();
    world.provider.failNext('disown', errorClass, 2);
    await world.pass().catch(() => {});
    await world.clock.advance(1000);
    if (requeueAfterMs === undefined) await expect(world.pass()).rejects.toThrow(errorClass);
    else expect(await world.pass()).toEqual({ requeueAfterMs });
    expect(world.proxy?.metadata.finalizers).toEqual([FINALIZER]);
    expect(world.message('Provisioned')).toMatch(/cleanup fails.*skip-cleanup/);
    expect(world.eventReasons).toEqual(['CleanupFailed']);
    await world.pass();
    expect(world.proxy).toBeUndefined();
    expect(world.provider.only.disowned).toBe(true);
  });

  test('keeps the object while its provider is not configured, until skip-cleanup', async () => {
    const world = await running({ deletionPolicy: 'Orphan' });
    world.providers = {};
    world.delete();
    expect(await world.pass()).toEqual({ requeueAfterMs: 300_000 });
    expect(world.message('Ready')).toMatch(/is not in the providers file.*skip-cleanup/);
    world.annotate({ [SKIP_CLEANUP_ANNOTATION]: 'true' });
    await world.pass();
    expect(world.proxy).toBeUndefined();
    expect(world.provider.only.disowned).toBeUndefined();
  });
});
