import { expect, it } from 'vitest';
import type { Child, Exit } from '#deploy/local/process/child.ts';
import { supervise } from '#deploy/local/process/supervisor.ts';
import { FakeClock, settle } from '#test/fakes/clock.ts';

interface FakeChild extends Child {
  end(exit: Exit): void;
  readonly grace: number[];
}

function fakeChild(pid: number): FakeChild {
  const { promise, resolve } = Promise.withResolvers<Exit>();
  const grace: number[] = [];
  return {
    name: 'part',
    pid,
    exited: promise,
    grace,
    end: resolve,
    async stop(graceMs) {
      grace.push(graceMs);
      resolve({ exitCode: 143, signal: 'SIGTERM' });
    },
  };
}

function supervised(startable: () => Promise<FakeChild> | undefined = () => undefined) {
  const clock = new FakeClock();
  const children: FakeChild[] = [];
  const told: string[] = [];
  const supervisor = supervise({
    clock,
    start: async () => {
      const child = (await startable()) ?? fakeChild(children.length + 1);
      children.push(child);
      return child;
    },
    isFinal: (exit) => exit.exitCode === 2,
    onEnd: (reason, ms) => told.push(`${reason}, again in ${ms}`),
    onFinal: (reason) => told.push(`final: ${reason}`),
  });
  return { clock, children, told, supervisor };
}

const failed: Exit = { exitCode: 1, signal: undefined };

it('starts again after pauses that grow, and begins anew after a long run', async () => {
  const { clock, children, told } = supervised();
  await settle();
  for (const pauseMs of [500, 1000, 2000]) {
    children.at(-1)?.end(failed);
    await clock.advance(pauseMs);
  }
  expect(children).toHaveLength(4);
  await clock.advance(60_000);
  children.at(-1)?.end({ exitCode: 137, signal: 'SIGKILL' });
  await settle();
  expect(told).toEqual([
    'exit 1, again in 500',
    'exit 1, again in 1000',
    'exit 1, again in 2000',
    'SIGKILL, again in 500',
  ]);
});

it('gives up on an exit that no start heals', async () => {
  const { clock, children, told, supervisor } = supervised();
  await settle();
  children[0]?.end({ exitCode: 2, signal: undefined });
  await clock.advance(60_000);
  expect(told).toEqual(['final: exit 2']);
  expect(children).toHaveLength(1);
  await supervisor.stop(0);
});

it('tries again when the program cannot be started', async () => {
  let broken = true;
  const { clock, children, told } = supervised(() =>
    broken ? Promise.reject(new Error('spawn ENOENT')) : undefined,
  );
  await settle();
  expect(told).toEqual(['spawn ENOENT, again in 500']);
  broken = false;
  await clock.advance(500);
  expect(children).toHaveLength(1);
});

it('stops the process that runs, and starts none after it', async () => {
  const { clock, children, told, supervisor } = supervised();
  await settle();
  expect(supervisor.current()?.pid).toBe(1);
  await supervisor.stop(250);
  await clock.advance(120_000);
  expect(children.map(({ grace }) => grace)).toEqual([[250]]);
  expect(told).toEqual([]);
  expect(clock.pendingTimers).toBe(0);
});

it('ends a process that was just being started when the stop came', async () => {
  const starting = Promise.withResolvers<FakeChild>();
  const { supervisor } = supervised(() => starting.promise);
  const stopped = supervisor.stop(250);
  const child = fakeChild(9);
  starting.resolve(child);
  await stopped;
  expect(child.grace).toEqual([250]);
});
