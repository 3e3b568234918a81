/** Signals at any moment of a start: nothing is left running, and the exit code says what happened. */

import { spawn } from 'node:child_process';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { eventually } from '#test/integration/eventually.ts';
import {
  cannotRun,
  cleanUp,
  type Ended,
  leftOf,
  newStateDir,
  ROOT,
  startStack,
  whole,
} from './stack.ts';

/** Stopping is bounded: an agent that drains, a Squid that closes its connections. */
const STOP_MS_MAX = 12_000;

afterEach(cleanUp, 30_000);

/** Steps of a warm machine follow each other closely: the last one may be through already. */
const wasThrough = ({ steps }: Ended) => steps.some(({ step }) => step === 'fetched');

describe.skipIf(cannotRun !== undefined)(whole('a signal'), () => {
  it.each([
    ['starting', 'SIGINT', 130],
    ['control-plane', 'SIGINT', 130],
    ['agent', 'SIGTERM', 143],
    ['applied', 'SIGINT', 130],
    ['edge', 'SIGTERM', 143],
    ['fetched', 'SIGINT', 0],
    ['fetched', 'SIGTERM', 0],
  ] as const)(
    'after the step "%s", %s leaves no process and exits with %i',
    async (step, signal, code) => {
      const stateDir = newStateDir();
      const stack = startStack(stateDir, ['--proxies=2']);
      await stack.step(step);
      const sentMs = systemClock.monotonicMs();
      const ended = await stack.stop(signal);
      expect(systemClock.monotonicMs() - sentMs).toBeLessThan(STOP_MS_MAX);
      expect(leftOf(stateDir)).toEqual([]);
      expect(ended.code).toBe(wasThrough(ended) ? 0 : code);
      expect(ended.stderr).toBe('');
    },
    60_000,
  );

  it.each([20, 150, 400, 800, 1_300])(
    '%i ms after the start leaves no process',
    async (afterMs) => {
      const stateDir = newStateDir();
      const stack = startStack(stateDir, ['--proxies=1']);
      await systemClock.sleep(afterMs);
      const ended = await stack.stop('SIGINT');
      expect(ended.code).toBe(wasThrough(ended) ? 0 : 130);
      expect(leftOf(stateDir)).toEqual([]);
    },
    60_000,
  );

  it('that kills the start itself leaves what the next start ends', async () => {
    const stateDir = newStateDir();
    const killed = startStack(stateDir, ['--proxies=1']);
    await killed.step('fetched');
    await killed.stop('SIGKILL');
    const left = leftOf(stateDir);
    expect(left.length).toBeGreaterThanOrEqual(3);

    const next = startStack(stateDir, ['--proxies=1']);
    await next.step('fetched');
    const pids = leftOf(stateDir).map(({ pid }) => pid);
    expect(left.filter(({ pid }) => pids.includes(pid))).toEqual([]);
    expect((await next.step('leftovers'))['ended']).toBe(left.length);
    await next.stop();
    expect(leftOf(stateDir)).toEqual([]);
  }, 90_000);

  it.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)(
    '%s to npm alone ends the stack',
    async (signal) => {
      const stateDir = newStateDir();
      const flags = ['--json', '--edge-port=0', '--api-port=0', '--metrics-port=0', '--proxies=1'];
      const args = ['start', '--silent', '--', ...flags, `--state-dir=${stateDir}`];
      const npm = spawn('npm', args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
      let out = '';
      npm.stdout.setEncoding('utf8').on('data', (chunk: string) => {
        out += chunk;
      });
      await eventually(() => expect(out).toContain('"step":"fetched"'), 60_000);
      npm.kill(signal);
      await eventually(() => expect(leftOf(stateDir)).toEqual([]), STOP_MS_MAX);
    },
    90_000,
  );
});
