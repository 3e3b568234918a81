/**
 * The provider answers every class of error at every call in turn, whether it had done what it was
 * asked to or not. Once it is well again (a permanent failure: once the spec is edited) there is
 * one machine of the present spec, or none of a Proxy that is gone.
 */
import { describe, expect, test } from 'vitest';
import {
  ProviderError,
  type ProviderErrorClass,
  type ProviderOp,
} from '#agent/providers/errors.ts';
import { managed, World } from './harness.ts';

const OPS = ['create', 'get', 'delete', 'list', 'disown'] as const;
const CLASSES = ['NotFound', 'QuotaExceeded', 'Transient', 'Permanent'] as const;
/** What became of the call that was answered by an error. */
const FATES = ['refused', 'done'] as const;
/** The nth call of a kind is the first to fail, and so many in a row do. */
const NTHS = [0, 1, 2, 3] as const;
const TIMES = [1, 3] as const;
/** The delay of a work queue that backs off, about; what fails is tried again after it. */
const BACKOFF_MS = 1_000;
const PASSES_MAX = 300;
const SETTLED_MS = 30_000;

interface Fault {
  readonly op: ProviderOp;
  readonly errorClass: ProviderErrorClass;
  readonly fate: (typeof FATES)[number];
  readonly nth: number;
  readonly times: number;
}

/** Each step is followed by as many passes as it takes, or by none when the next comes at once. */
const SCENARIOS: Readonly<Record<string, readonly ((world: World) => void)[]>> = {
  'is made': [],
  'is moved to another zone': [(world) => world.edit({ placement: { zone: 'b' } })],
  'is given another port': [(world) => world.edit({ port: 9000 })],
  'dies and is made again': [killMachine],
  vanishes: [(world) => world.provider.machines.clear()],
  'is deleted': [(world) => world.delete()],
  'is moved and deleted at once': [
    (world) => {
      world.edit({ placement: { zone: 'b' } });
      world.delete();
    },
  ],
  'is deleted and left running': [
    (world) => {
      world.edit({ deletionPolicy: 'Orphan' });
      world.delete();
    },
  ],
  'was never recorded and is moved': [
    (world) => {
      forgetRecord(world);
      world.edit({ placement: { zone: 'b' } });
    },
  ],
  'was never recorded and is deleted': [
    (world) => {
      forgetRecord(world);
      world.delete();
    },
  ],
};

/** As after a crash between the creation and the write of the status. */
function forgetRecord(world: World): void {
  if (world.proxy !== undefined) world.proxy = { ...world.proxy, status: {} };
}

function killMachine(world: World): void {
  for (const machine of world.provider.machines.values()) machine.forced = 'Terminated';
}

/** Fails the calls that the fault is about; answers how many it has failed. */
function inject(world: World, { op, errorClass, fate, nth, times }: Fault): () => number {
  let calls = 0;
  let hits = 0;
  world.around = async (what, call) => {
    const mine = what === op ? calls++ : -1;
    if (mine < nth || mine >= nth + times) return call();
    hits++;
    if (fate === 'done') await call();
    throw new ProviderError(errorClass, { op, provider: 'memory' }, `${errorClass} at ${op}`);
  };
  return () => hits;
}

/** As the queue would: again after a failure, and after what a pass asks for. */
async function converge(world: World, hits: () => number): Promise<void> {
  for (let pass = 0; pass < PASSES_MAX; pass++) {
    const hitsBefore = hits();
    const pauseMs = await nextPauseMs(world);
    if (world.proxy === undefined) return;
    const calm = pauseMs >= SETTLED_MS && hits() === hitsBefore;
    if (isLatched(world)) heal(world);
    else if (calm && world.condition('Provisioned') === 'True/Created') return;
    await world.clock.advance(pauseMs === Number.POSITIVE_INFINITY ? SETTLED_MS : pauseMs);
  }
  throw new Error(`not settled: ${JSON.stringify(world.proxy)}`);
}

async function nextPauseMs(world: World): Promise<number> {
  try {
    return (await world.pass()).requeueAfterMs ?? Number.POSITIVE_INFINITY;
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    return BACKOFF_MS;
  }
}

function isLatched(world: World): boolean {
  const deleting = world.proxy?.metadata.deletionTimestamp !== undefined;
  return !deleting && world.condition('Provisioned') === 'False/PermanentError';
}

/** What a person does about a permanent failure; nothing that needs another machine. */
function heal(world: World): void {
  expect(world.status.phase).toBe('Failed');
  world.edit({ maxLeases: (world.proxy?.spec.maxLeases ?? 0) + 1 });
}

async function play(steps: readonly ((world: World) => void)[], fault: Fault) {
  const world = new World(managed());
  const hits = inject(world, fault);
  await converge(world, hits);
  for (const step of steps) {
    step(world);
    await converge(world, hits);
  }
  return { world, hits: hits() };
}

/** Machines that nobody has asked to go. */
const alive = (world: World) =>
  [...world.provider.machines.values()].filter(({ goesIn }) => goesIn === undefined);

function checkEnd(world: World, isOrphaned: boolean): void {
  const machines = alive(world);
  if (world.proxy === undefined) {
    expect(machines.filter(({ disowned }) => !disowned)).toEqual([]);
    expect(machines).toHaveLength(isOrphaned ? 1 : 0);
    return;
  }
  expect(machines).toHaveLength(1);
  const { request, id, ip } = world.provider.only;
  expect(world.status).toMatchObject({ providerID: id, ip });
  expect(request.placement.zone).toBe(world.proxy.spec.placement?.zone);
  expect(request.port).toBe(world.proxy.spec.port);
}

const reached = new Set<string>();

describe.each(Object.keys(SCENARIOS))('a machine that %s', (name) => {
  const cases = CLASSES.flatMap((errorClass) => OPS.map((op) => ({ op, errorClass })));
  for (const { op, errorClass } of cases) {
    test(`comes out right when ${op} answers ${errorClass}`, async () => {
      await playAll(name, op, errorClass);
    });
  }
});

async function playAll(name: string, op: ProviderOp, errorClass: ProviderErrorClass) {
  for (const fate of FATES) {
    for (const nth of NTHS) {
      for (const times of TIMES) {
        const fault = { op, errorClass, fate, nth, times };
        const { world, hits } = await play(SCENARIOS[name] ?? [], fault);
        if (hits > 0) reached.add(`${op} ${errorClass}`);
        try {
          checkEnd(world, name.endsWith('left running'));
        } catch (error) {
          throw new Error(`after ${JSON.stringify(fault)}`, { cause: error });
        }
      }
    }
  }
}

test('every class of error was met at every call', () => {
  const all = CLASSES.flatMap((errorClass) => OPS.map((op) => `${op} ${errorClass}`));
  expect(all.filter((one) => !reached.has(one))).toEqual([]);
});
