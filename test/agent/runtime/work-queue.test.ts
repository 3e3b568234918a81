import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createWorkQueue, type QueueObserver, type WorkQueue } from '#agent/runtime/work-queue.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';

const never = new AbortController().signal;

function setUp(observer?: QueueObserver) {
  const clock = new FakeClock();
  const deps = { clock, random: () => 1, backoff: { baseMs: 100, maxMs: 1_000 } };
  const queue = createWorkQueue(observer === undefined ? deps : { ...deps, observer });
  return { clock, queue };
}

/** What a `get` that has to wait has given by now. */
function pendingGet(queue: WorkQueue, signal = never) {
  const state: { key?: string | undefined; settled: boolean } = { settled: false };
  void queue.get(signal).then((key) => {
    state.key = key;
    state.settled = true;
  });
  return state;
}

describe('work queue', () => {
  test('gives keys in the order of their arrival', async () => {
    const { queue } = setUp();
    for (const key of ['a', 'b', 'c']) queue.add(key);
    expect([await queue.get(never), await queue.get(never), await queue.get(never)]).toEqual([
      'a',
      'b',
      'c',
    ]);
  });

  test('a key that is added twice before it is taken is given once', async () => {
    const { queue } = setUp();
    queue.add('a');
    queue.add('a');
    expect(queue.size).toBe(1);
    await queue.get(never);
    queue.done('a');
    const next = pendingGet(queue);
    await settle();
    expect(next.settled).toBe(false);
  });

  test('a key that is added while it is worked on comes again after done, once', async () => {
    const { queue } = setUp();
    queue.add('a');
    await queue.get(never);
    queue.add('a');
    queue.add('a');
    const next = pendingGet(queue);
    await settle();
    expect(next.settled).toBe(false);
    queue.done('a');
    await settle();
    expect(next.key).toBe('a');
    queue.done('a');
    expect(queue.size).toBe(0);
  });

  test('a waiting get is served by the next add', async () => {
    const { queue } = setUp();
    const first = pendingGet(queue);
    const second = pendingGet(queue);
    queue.add('a');
    queue.add('b');
    await settle();
    expect([first.key, second.key]).toEqual(['a', 'b']);
  });

  test('of several delays of a key the earliest holds', async () => {
    const { clock, queue } = setUp();
    queue.addAfter('a', 500);
    queue.addAfter('a', 200);
    queue.addAfter('a', 900);
    await clock.advance(199);
    expect(queue.size).toBe(0);
    await clock.advance(1);
    expect(queue.size).toBe(1);
    await queue.get(never);
    queue.done('a');
    await clock.advance(10_000);
    expect(queue.size).toBe(0);
  });

  test('failures of a key back off exponentially up to the maximum, forget starts anew', async () => {
    const { clock, queue } = setUp();
    const delays: (number | undefined)[] = [];
    const fail = async () => {
      queue.addRateLimited('a');
      delays.push(clock.nextTimerMs);
      await clock.advance(clock.nextTimerMs ?? 0);
      await queue.get(never);
      queue.done('a');
    };
    for (let attempt = 0; attempt < 6; attempt++) await fail();
    expect(delays).toEqual([100, 200, 400, 800, 1_000, 1_000]);
    queue.forget('a');
    await fail();
    expect(delays.at(-1)).toBe(100);
  });

  test('a failure may ask for a shorter wait, or for a longer one', () => {
    const { clock, queue } = setUp();
    for (let attempt = 0; attempt < 3; attempt++) queue.addRateLimited('a', 0, 150);
    expect(clock.nextTimerMs).toBe(100);
    queue.addRateLimited('b', 50, 30);
    expect(clock.nextTimerMs).toBe(50);
  });

  test('failures of one key do not slow down another', () => {
    const { clock, queue } = setUp();
    for (let attempt = 0; attempt < 5; attempt++) queue.addRateLimited('a');
    queue.addRateLimited('b');
    expect(clock.nextTimerMs).toBe(100);
  });

  test('an aborted get gives nothing and takes nothing', async () => {
    const { queue } = setUp();
    const stop = new AbortController();
    const waiting = pendingGet(queue, stop.signal);
    stop.abort();
    await settle();
    expect(waiting).toEqual({ settled: true, key: undefined });
    queue.add('a');
    expect(queue.size).toBe(1);
    expect(await queue.get(stop.signal)).toBeUndefined();
    expect(queue.size).toBe(1);
  });

  test('closing ends every wait and every timer, and later adds are ignored', async () => {
    const { clock, queue } = setUp();
    const waiting = pendingGet(queue);
    queue.addAfter('a', 1_000);
    queue.close();
    await settle();
    expect(waiting).toEqual({ settled: true, key: undefined });
    expect(clock.pendingTimers).toBe(0);
    queue.add('b');
    queue.addAfter('c', 1);
    queue.addRateLimited('d');
    expect(queue.size).toBe(0);
    expect(await queue.get(never)).toBeUndefined();
  });

  test('the observer learns depth, waiting and working time', async () => {
    const seen: string[] = [];
    const { clock, queue } = setUp({
      added: () => seen.push('added'),
      retried: () => seen.push('retried'),
      depth: (count) => seen.push(`depth ${count}`),
      queued: (ms) => seen.push(`queued ${ms}`),
      worked: (ms) => seen.push(`worked ${ms}`),
    });
    queue.add('a');
    await clock.advance(30);
    await queue.get(never);
    await clock.advance(70);
    queue.done('a');
    queue.addRateLimited('a');
    expect(seen).toEqual(['added', 'depth 1', 'queued 30', 'depth 0', 'worked 70', 'retried']);
  });
});

type Step =
  | { readonly op: 'add' | 'after' | 'limited' | 'forget'; readonly key: string }
  | { readonly op: 'take' | 'finish' }
  | { readonly op: 'time'; readonly ms: number };

const keys = fc.constantFrom('a', 'b', 'c', 'd');
const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ op: fc.constantFrom('add', 'after', 'limited', 'forget'), key: keys }),
  fc.record({ op: fc.constantFrom('take', 'finish') }),
  fc.record({ op: fc.constant('time' as const), ms: fc.integer({ min: 0, max: 2_000 }) }),
);

/** Runs `script` against a queue and checks the invariants after each step. */
async function runScript(script: readonly Step[]): Promise<void> {
  const { clock, queue } = setUp();
  const working = new Set<string>();
  /** Keys whose last add has not been followed by a delivery yet. */
  const owed = new Set<string>();
  const take = async () => {
    if (queue.size === 0) return;
    const key = await queue.get(never);
    if (key === undefined) throw new Error('an open queue gave nothing');
    expect(working.has(key)).toBe(false);
    working.add(key);
    owed.delete(key);
  };
  for (const step of script) {
    switch (step.op) {
      case 'add':
        queue.add(step.key);
        owed.add(step.key);
        break;
      case 'after':
        queue.addAfter(step.key, 700);
        owed.add(step.key);
        break;
      case 'limited':
        queue.addRateLimited(step.key);
        owed.add(step.key);
        break;
      case 'forget':
        queue.forget(step.key);
        break;
      case 'take':
        await take();
        break;
      case 'finish': {
        const [key] = working;
        if (key === undefined) break;
        working.delete(key);
        queue.done(key);
        break;
      }
      case 'time':
        await clock.advance(step.ms);
    }
  }
  // Whatever the history, waiting and working on brings every owed key and nothing twice at once.
  for (let round = 0; round < 20; round++) {
    await clock.advance(1_000);
    for (const key of working) queue.done(key);
    working.clear();
    while (queue.size > 0) await take();
  }
  expect([...owed]).toEqual([]);
  expect(clock.pendingTimers).toBe(0);
}

test('no history hands a key to two workers at once or loses one', async () => {
  await fc.assert(fc.asyncProperty(fc.array(steps, { maxLength: 60 }), runScript), {
    numRuns: 200,
  });
});
