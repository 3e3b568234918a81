import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { DeadlineError, withDeadline } from '#agent/runtime/deadline.ts';
import { runPeriodic } from '#agent/runtime/periodic.ts';
import { supervise } from '#agent/runtime/supervise.ts';
import { watchFile } from '#agent/runtime/watched-file.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';

const untilAborted = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

describe('deadline', () => {
  test('a call that hangs is aborted and reported as too late', async () => {
    const clock = new FakeClock();
    const call = withDeadline(clock, 5_000, undefined, untilAborted);
    const failure = expect(call).rejects.toBeInstanceOf(DeadlineError);
    await clock.advance(5_000);
    await failure;
    expect(clock.pendingTimers).toBe(0);
  });

  test('an abort by the caller keeps its reason', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const call = withDeadline(clock, 5_000, stop.signal, untilAborted);
    stop.abort(new Error('stopping'));
    await expect(call).rejects.toThrow('stopping');
    expect(clock.pendingTimers).toBe(0);
  });

  test('a failure before the deadline is passed on as it is', async () => {
    const clock = new FakeClock();
    const call = withDeadline(clock, 5_000, undefined, async () => {
      throw new Error('refused');
    });
    await expect(call).rejects.toThrow('refused');
  });
});

describe('periodic', () => {
  test('runs follow each other with the interval in between, whatever a run takes', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const starts: number[] = [];
    const begin = clock.now();
    const done = runPeriodic({
      clock,
      random: () => 0.5,
      intervalMs: 1_000,
      task: async () => {
        starts.push(clock.now() - begin);
        await clock.sleep(300);
      },
      onError: () => {},
      signal: stop.signal,
    });
    await clock.advance(4_000);
    expect(starts).toEqual([1_000, 2_300, 3_600]);
    stop.abort();
    await clock.advance(1_000);
    await done;
  });

  test('a failed run is reported and followed by the next', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const onError = vi.fn();
    let runs = 0;
    const done = runPeriodic({
      clock,
      random: () => 0.5,
      intervalMs: 1_000,
      immediately: true,
      task: async () => {
        runs++;
        throw new Error('no');
      },
      onError,
      signal: stop.signal,
    });
    await clock.advance(2_000);
    expect([runs, onError.mock.calls.length]).toEqual([3, 3]);
    stop.abort();
    await done;
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('supervise', () => {
  test('a stop ends every loop and names none as left over', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const done = supervise({ a: untilAborted, b: untilAborted }, { clock, stop, graceMs: 1_000 });
    stop.abort(new Error('SIGTERM'));
    expect(await done).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  test('a loop that fails stops the others and is what the caller learns', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    let otherEnded = false;
    const done = supervise(
      {
        failing: async () => {
          throw new Error('broken');
        },
        other: (signal) =>
          untilAborted(signal).finally(() => {
            otherEnded = true;
          }),
      },
      { clock, stop, graceMs: 1_000 },
    );
    await expect(done).rejects.toThrow('broken');
    expect(otherEnded).toBe(true);
  });

  test('a loop that ends without being told to is a failure', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const done = supervise({ short: async () => {} }, { clock, stop, graceMs: 1_000 });
    await expect(done).rejects.toThrow('short');
  });

  test('a loop that does not end is left after the grace time, by name', async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const done = supervise(
      { stuck: () => new Promise<void>(() => {}), good: untilAborted },
      { clock, stop, graceMs: 1_000 },
    );
    stop.abort(new Error('SIGTERM'));
    await clock.advance(1_000);
    expect(await done).toEqual(['stuck']);
  });
});

describe('watched file', () => {
  test('tells a changed text once, and a missing file once', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'watched-'));
    const path = join(folder, 'providers.yaml');
    await writeFile(path, 'one');
    const clock = new FakeClock();
    const stop = new AbortController();
    const seen: string[] = [];
    const done = watchFile({
      path,
      text: 'one',
      clock,
      random: () => 0.5,
      intervalMs: 1_000,
      onChange: (text) => seen.push(text),
      onError: () => seen.push('error'),
      signal: stop.signal,
    });
    /** One poll: the read itself is real, so its end is waited for. */
    const poll = async () => {
      await vi.waitFor(() => expect(clock.pendingTimers).toBe(1));
      await clock.advance(1_000);
      await vi.waitFor(() => expect(clock.pendingTimers).toBe(1));
    };
    await poll();
    await writeFile(path, 'two');
    await poll();
    await poll();
    await rm(path);
    await poll();
    await poll();
    await writeFile(path, 'three');
    await poll();
    expect(seen).toEqual(['two', 'error', 'three']);
    stop.abort();
    await settle();
    await done;
    await rm(folder, { recursive: true });
  });
});
