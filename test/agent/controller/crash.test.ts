/**
 * The agent dies at every call to the outside, before it and after it took effect, in every
 * scenario. Whatever is left must lead to the same end: one machine of the last spec, or none.
 */
import { describe, expect, test } from 'vitest';
import { Crash, managed, World } from './harness.ts';

interface Scenario {
  readonly name: string;
  /** What happens to the object or the machine, one after the other, each with `settle` behind. */
  readonly steps: readonly ((world: World) => void)[];
}

const dies = (state: 'Stopped' | 'Terminated') => (world: World) => {
  world.provider.only.forced = state;
};

const drainsFor = (drainSeconds: number) => (world: World) => world.edit({ drainSeconds });

const scenarios: readonly Scenario[] = [
  { name: 'made', steps: [] },
  { name: 'moved to another zone', steps: [(w) => w.edit({ placement: { zone: 'b' } })] },
  { name: 'given another port', steps: [(w) => w.edit({ port: 9000 })] },
  {
    name: 'replaced after it died',
    steps: [dies('Terminated')],
  },
  { name: 'made again after it vanished', steps: [(w) => w.provider.machines.clear()] },
  {
    name: 'moved, killed and moved back',
    steps: [
      (w) => w.edit({ placement: { zone: 'b' } }),
      dies('Stopped'),
      (w) => w.edit({ placement: { zone: 'a' } }),
    ],
  },
  { name: 'deleted', steps: [(w) => w.delete()] },
  {
    name: 'drained before it moves',
    steps: [drainsFor(30), (w) => w.edit({ placement: { zone: 'b' } })],
  },
  {
    name: 'drained, moved back and deleted',
    steps: [
      drainsFor(30),
      (w) => {
        w.edit({ placement: { zone: 'b' } });
        w.leases = 3;
      },
      (w) => w.edit({ placement: { zone: 'a' } }),
      (w) => w.delete(),
    ],
  },
  {
    name: 'released with its machine left running',
    steps: [
      (w) => {
        w.edit({ deletionPolicy: 'Orphan' });
        w.delete();
      },
    ],
  },
  {
    name: 'deleted in the middle of a move',
    steps: [
      (w) => {
        w.edit({ placement: { zone: 'b' } });
        w.delete();
      },
    ],
  },
];

type When = 'before' | 'after';

/** Counts the calls and dies at call number `at`; answers how many calls there were. */
function crashAt(world: World, at: number, when: When): () => number {
  let calls = 0;
  world.around = async (_what, call) => {
    const mine = calls++;
    if (mine === at && when === 'before') throw new Crash('before');
    const answer = await call();
    const alive = [...world.provider.machines.values()].filter((m) => m.goesIn === undefined);
    expect(alive.length, 'machines alive at once').toBeLessThanOrEqual(1);
    if (mine === at) throw new Crash('after');
    return answer;
  };
  return () => calls;
}

async function settleThroughCrashes(world: World): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await world.settle();
    } catch (error) {
      if (!(error instanceof Crash) || attempt > 3) throw error;
      world.restart();
    }
  }
}

/** Plays the scenario with one crash; `between` edits the spec right after it. */
async function play(scenario: Scenario, at: number, when: When, between?: (w: World) => void) {
  const world = new World(managed());
  const calls = crashAt(world, at, when);
  const withEdit = async () => {
    try {
      await world.settle();
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      world.restart();
      between?.(world);
      await settleThroughCrashes(world);
    }
  };
  await withEdit();
  for (const step of scenario.steps) {
    step(world);
    await withEdit();
  }
  return { world, calls: calls() };
}

function checkEnd(world: World): void {
  if (world.proxy === undefined) {
    expectNobodys(world);
    return;
  }
  expect(world.condition('Provisioned')).toBe('True/Created');
  expect(world.provider.machines.size).toBe(1);
  const { request, id, ip } = world.provider.only;
  expect(world.status).toMatchObject({ providerID: id, ip });
  expect(request.placement.zone).toBe(world.proxy.spec.placement?.zone);
  expect(request.port).toBe(world.proxy.spec.port);
}

/** Whatever outlives its object is without our mark: nobody pays for it unawares. */
function expectNobodys(world: World): void {
  const owned = [...world.provider.machines.values()].filter((machine) => !machine.disowned);
  expect(owned).toEqual([]);
}

describe.each(scenarios)('a proxy that is $name', (scenario) => {
  test.each(['before', 'after'] as const)('survives a crash %s every call', async (when) => {
    const { calls } = await play(scenario, Number.POSITIVE_INFINITY, when);
    expect(calls).toBeGreaterThan(4);
    for (let at = 0; at < calls; at++) checkEnd((await play(scenario, at, when)).world);
  });

  test('survives a crash after every call with an edit while the agent is away', async () => {
    const move = (world: World) => world.proxy && world.edit({ placement: { zone: 'c' } });
    const { calls } = await play(scenario, Number.POSITIVE_INFINITY, 'after');
    for (let at = 0; at < calls; at++) checkEnd((await play(scenario, at, 'after', move)).world);
  });

  test('leaves nothing when it is deleted while the agent is away', async () => {
    const { calls } = await play(scenario, Number.POSITIVE_INFINITY, 'after');
    for (let at = 0; at < calls; at++) {
      const world = new World(managed());
      crashAt(world, at, 'after');
      for (const step of [() => {}, ...scenario.steps]) {
        if (world.proxy !== undefined && world.provider.machines.size > 0) step(world);
        try {
          await world.settle();
        } catch (error) {
          if (!(error instanceof Crash)) throw error;
          break;
        }
      }
      world.restart();
      world.delete();
      await world.settle();
      expect(world.proxy).toBeUndefined();
      expectNobodys(world);
    }
  });
});
