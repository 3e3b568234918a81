import { describe, expect, test } from 'vitest';
import { createWorkQueue } from '#agent/runtime/work-queue.ts';
import { RECONCILE_DEADLINE_MS, type Reconcile, runWorkers } from '#agent/runtime/workers.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';

function setUp(
  reconcile: Reconcile,
  count = 3,
  retryWithinMs?: (error: unknown) => number | undefined,
) {
  const clock = new FakeClock();
  const queue = createWorkQueue({
    clock,
    random: () => 1,
    backoff: { baseMs: 100, maxMs: 1_000 },
  });
  const outcomes: string[] = [];
  const stop = new AbortController();
  const observer = {
    reconciled: (key: string, outcome: string) => void outcomes.push(`${key} ${outcome}`),
  };
  const { signal } = stop;
  const limit = retryWithinMs === undefined ? {} : { retryWithinMs };
  const done = runWorkers({ queue, count, reconcile, clock, observer, signal, ...limit });
  return { clock, queue, outcomes, stop, done };
}

describe('workers', () => {
  test('what failed is tried again within the time that its failure allows', async () => {
    let tries = 0;
    const failing = async () => {
      tries++;
      throw new Error('away');
    };
    const { queue, clock, stop, done } = setUp(failing, 1, () => 150);
    queue.add('a');
    for (let ms = 0; ms < 1_500; ms += 50) await clock.advance(50);
    expect(tries).toBeGreaterThanOrEqual(10);
    stop.abort();
    await done;
  });

  test('as many keys are worked on at once as there are workers', async () => {
    const running = new Set<string>();
    let most = 0;
    const gate = Promise.withResolvers<void>();
    const { queue, stop, done } = setUp(async (key) => {
      running.add(key);
      most = Math.max(most, running.size);
      await gate.promise;
      running.delete(key);
      return {};
    });
    for (let key = 0; key < 10; key++) queue.add(`ns/p${key}`);
    await settle();
    expect(running.size).toBe(3);
    gate.resolve();
    await settle(100);
    expect([most, running.size, queue.size]).toEqual([3, 0, 0]);
    stop.abort();
    await done;
  });

  test('a failure that says how long to wait comes back no sooner', async () => {
    const refusal = Object.assign(new Error('429'), { retryAfterMs: 5_000 });
    const { clock, queue, outcomes, stop, done } = setUp(async () => {
      throw new Error('create failed', { cause: refusal });
    });
    queue.add('ns/a');
    await clock.advance(4_999);
    expect(outcomes).toEqual(['ns/a error']);
    await clock.advance(1);
    expect(outcomes).toEqual(['ns/a error', 'ns/a error']);
    stop.abort();
    await done;
  });

  test('a failure comes back with backoff, and a success ends the backoff', async () => {
    let failing = true;
    const { clock, queue, outcomes, stop, done } = setUp(async () => {
      if (failing) throw new Error('no');
      return {};
    });
    queue.add('ns/a');
    await settle();
    expect(clock.nextTimerMs).toBeLessThanOrEqual(100);
    await clock.advance(100);
    failing = false;
    await clock.advance(200);
    expect(outcomes).toEqual(['ns/a error', 'ns/a error', 'ns/a success']);
    failing = true;
    queue.add('ns/a');
    await clock.advance(100);
    expect(outcomes.slice(3)).toEqual(['ns/a error', 'ns/a error']);
    stop.abort();
    await done;
  });

  test('a result can ask to be looked at again', async () => {
    let runs = 0;
    const { clock, outcomes, queue, stop, done } = setUp(async () => {
      runs++;
      return runs === 1 ? { requeueAfterMs: 5_000 } : {};
    });
    queue.add('ns/a');
    await clock.advance(4_999);
    expect(runs).toBe(1);
    await clock.advance(1);
    expect(outcomes).toEqual(['ns/a requeue', 'ns/a success']);
    stop.abort();
    await done;
  });

  test('stopping aborts what runs, waits for it, and is no failure', async () => {
    const cleanedUp = Promise.withResolvers<void>();
    const { queue, outcomes, stop, done } = setUp(async (_key, signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await cleanedUp.promise;
      throw signal.reason;
    });
    queue.add('ns/a');
    await settle();
    stop.abort();
    let ended = false;
    void done.then(() => {
      ended = true;
    });
    await settle();
    expect(ended).toBe(false);
    cleanedUp.resolve();
    await done;
    expect(outcomes).toEqual([]);
  });

  test('a reconcile that hangs loses its worker only until its deadline', async () => {
    const { clock, queue, outcomes, stop, done } = setUp(
      (_key, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('closed')));
        }),
      1,
    );
    queue.add('ns/a');
    await clock.advance(RECONCILE_DEADLINE_MS);
    expect(outcomes).toEqual(['ns/a error']);
    stop.abort();
    await done;
  });
});
