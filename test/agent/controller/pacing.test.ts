/** Machines are made no faster than is sane, whatever makes them fail. */
import { describe, expect, test } from 'vitest';
import { createPacing, DEFAULT_PACING } from '#agent/controller/pacing.ts';
import { createWorkQueue } from '#agent/runtime/work-queue.ts';
import { runWorkers } from '#agent/runtime/workers.ts';
import { KEY, managed, World } from './harness.ts';

describe('deaths', () => {
  const die = (pacing: ReturnType<typeof createPacing>, nowMs: number, ranMs = 0) =>
    pacing.died('k', { specHash: 'h', ranMs, nowMs });

  test.each([
    [1, undefined],
    [2, 10_000],
    [3, 20_000],
    [4, 40_000],
    [6, 160_000],
    [7, 300_000],
    [2000, 300_000],
  ])('number %i is waited out for %s ms', (count, waitMs) => {
    const pacing = createPacing();
    for (let nth = 0; nth < count; nth++) die(pacing, 0);
    expect(pacing.crashWait('k', 'h', 0)?.waitMs).toBe(waitMs);
  });

  test('of a machine that has run for ten minutes, or of another spec, do not count', () => {
    const pacing = createPacing();
    for (let nth = 0; nth < 5; nth++) die(pacing, 0);
    expect(pacing.crashWait('k', 'other', 0)).toBeUndefined();
    die(pacing, 1_000_000, DEFAULT_PACING.provenMs);
    expect(pacing.crashWait('k', 'h', 1_000_000)).toBeUndefined();
  });

  test('are told with the same text however long the wait still is', () => {
    const pacing = createPacing();
    for (const nowMs of [0, 30_000, 95_000]) die(pacing, nowMs);
    const message = 'waiting 20 s before the next attempt: 3 instances died within 95 s';
    expect(pacing.crashWait('k', 'h', 95_000)).toEqual({ waitMs: 20_000, message });
    expect(pacing.crashWait('k', 'h', 114_999)).toEqual({ waitMs: 1, message });
    expect(pacing.crashWait('k', 'h', 115_000)).toBeUndefined();
  });
});

describe('creations at a provider', () => {
  test('are so many within any minute, each Proxy waiting once, in order', () => {
    const pacing = createPacing({ ...DEFAULT_PACING, creationsPerMinute: 3 });
    const waits = (nowMs: number, keys: string) =>
      [...keys].map((key) => pacing.takeCreation(key, { name: 'p' }, nowMs)?.waitMs ?? 0);
    expect(waits(0, 'ab')).toEqual([0, 0]);
    expect(waits(10_000, 'cdefgh')).toEqual([0, 50_000, 50_000, 60_000, 110_000, 110_000]);
    expect(waits(20_000, 'dd')).toEqual([40_000, 40_000]);
    expect(waits(60_000, 'de')).toEqual([0, 0]);
    expect(pacing.takeCreation('a', { name: 'other' }, 60_000)).toBeUndefined();
    const own = { name: 'own', creationsPerMinute: 1 };
    expect(pacing.takeCreation('x', own, 0)).toBeUndefined();
    expect(pacing.takeCreation('y', own, 0)?.waitMs).toBe(60_000);
  });

  test('beyond the limit wait and say so; a repeat of a recorded one does not', async () => {
    const world = new World(managed(), { pacing: { ...DEFAULT_PACING, creationsPerMinute: 1 } });
    world.around = (what, call) => {
      if (what === 'patchStatus') throw new Error('crash');
      return call();
    };
    await expect(world.pass()).rejects.toThrow('crash');
    world.around = (_what, call) => call();
    await world.settle();
    expect(world.provider.made).toBe(1);
    expect(world.condition('Provisioned')).toBe('True/Created');
    await world.clock.advance(10_000);
    world.provider.machines.clear();
    await world.passes(2);
    world.writes.length = 0;
    expect((await world.pass()).requeueAfterMs).toBeGreaterThan(20_000);
    await world.pass();
    expect(world.writes).toEqual(['patchStatus']);
    expect(world.condition('Provisioned')).toBe('False/Provisioning');
    expect(world.message('Provisioned')).toBe(
      'throttled: at most 1 instances a minute are created at provider "memory"',
    );
    expect(world.provider.made).toBe(1);
    await world.clock.advance(60_000);
    await world.settle();
    expect(world.provider.made).toBe(2);
    expect(world.eventReasons.filter((each) => each === 'Throttled')).toHaveLength(1);
  });
});

describe('a proxy whose machines die young', () => {
  /** Times between two creations while every machine dies as soon as it is seen. */
  async function pauses(end: (world: World) => void): Promise<number[]> {
    const world = new World(managed());
    const madeAtMs: number[] = [];
    while (madeAtMs.length < 6) {
      end(world);
      const { requeueAfterMs } = await world.pass();
      if (world.provider.made > madeAtMs.length) madeAtMs.push(world.clock.now());
      await world.clock.advance(requeueAfterMs ?? 0);
    }
    return madeAtMs.slice(1).map((atMs, nth) => atMs - (madeAtMs[nth] ?? 0));
  }

  const kill = (world: World) => {
    for (const machine of world.provider.machines.values()) machine.forced = 'Terminated';
  };
  const vanish = (world: World) => world.provider.machines.clear();

  test.each([
    ['die', kill],
    ['vanish', vanish],
  ])('is given another ever more slowly when they %s', async (_how, end) => {
    const [first = 0, ...next] = await pauses(end);
    expect(first).toBeLessThan(10_000);
    next.forEach((pauseMs, nth) => {
      const leastMs = 10_000 * 2 ** nth;
      expect(pauseMs).toBeGreaterThanOrEqual(leastMs);
      expect(pauseMs).toBeLessThan(leastMs + 15_000);
    });
  });

  test('shows the wait, once, and an edit ends it', async () => {
    const world = new World(managed());
    for (;;) {
      world.provider.machines.clear();
      const { requeueAfterMs } = await world.pass();
      if (world.message('Provisioned').startsWith('waiting 20 s')) break;
      await world.clock.advance(requeueAfterMs ?? 0);
    }
    expect(world.message('Provisioned')).toMatch(/3 instances died within \d+ s$/);
    expect(world.status.phase).toBe('Provisioning');
    world.writes.length = 0;
    await world.pass();
    expect(world.writes).toEqual([]);
    expect(world.eventReasons.filter((each) => each === 'CrashLoop')).toHaveLength(2);
    const { made } = world.provider;
    world.edit({ placement: { zone: 'b' } });
    await world.pass();
    expect(world.provider.made).toBe(made + 1);
  });

  test('starts afresh once one of them has run for ten minutes', async () => {
    const world = new World(managed());
    for (let death = 0; death < 4; death++) {
      await world.settle();
      world.provider.machines.clear();
      await world.passes(1);
    }
    await world.settle();
    await world.clock.advance(600_000);
    world.provider.machines.clear();
    const { made } = world.provider;
    await world.passes(2);
    expect(world.provider.made).toBe(made + 1);
  });
});

describe('creates that fail', () => {
  /** Attempts within `ms`, with real workers and a cluster that echoes every write as a notice. */
  async function attempts(world: World, ms: number): Promise<number> {
    let creates = 0;
    const stop = new AbortController();
    const queue = createWorkQueue({ clock: world.clock, random: () => 0.5 });
    world.around = async (what, call) => {
      if (what === 'create') creates++;
      try {
        return await call();
      } finally {
        if (what === 'patchStatus') queue.add(KEY);
      }
    };
    const { clock, reconcile } = world;
    const running = runWorkers({ queue, count: 1, reconcile, clock, signal: stop.signal });
    queue.add(KEY);
    for (let tick = 0; tick < ms / 100; tick++) await clock.advance(100);
    stop.abort();
    queue.close();
    await running;
    return creates;
  }

  test.each([
    ['for want of quota', ['QuotaExceeded'], 12],
    ['for a while', ['Transient'], 32],
    ['now for one reason, now for another', ['Transient', 'QuotaExceeded'], 25],
  ] as const)('%s are repeated ever more slowly', async (_why, classes, most) => {
    const world = new World(managed());
    for (let nth = 0; nth < 500; nth++) {
      world.provider.failNext('create', classes[nth % classes.length] ?? 'Transient');
    }
    const creates = await attempts(world, 3_000_000);
    expect(creates).toBeGreaterThan(9);
    expect(creates).toBeLessThanOrEqual(most);
  });

  test('are tried again at once when the spec is edited', async () => {
    const world = new World(managed());
    world.provider.failNext('create', 'QuotaExceeded');
    await world.pass();
    await world.pass();
    expect(world.provider.made).toBe(0);
    world.edit({ maxLeases: 2 });
    await world.pass();
    expect(world.provider.made).toBe(1);
  });
});
