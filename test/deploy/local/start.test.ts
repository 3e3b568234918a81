import { afterEach, describe, expect, it } from 'vitest';
import { cannotRun, cleanUp, leftOf, newStateDir, startStack, whole } from '#test/e2e/stack.ts';

afterEach(cleanUp, 30_000);

describe.skipIf(cannotRun !== undefined)(whole('a start'), () => {
  it('that nobody reads any more ends, and leaves no process', async () => {
    const stateDir = newStateDir();
    const stack = startStack(stateDir, ['--proxies=1']);
    await stack.step('control-plane');
    stack.process.stdout?.destroy();
    const ended = await stack.ended;
    expect(ended.code).toBe(141);
    expect(ended.stderr).toBe('');
    expect(leftOf(stateDir)).toEqual([]);
  }, 60_000);

  it('that stumbles over a bug says so, ends, and leaves no process', async () => {
    const stateDir = newStateDir();
    const bug = `process.on('SIGUSR2', () => { throw new Error('a bug') })`;
    const preload = `--import=data:text/javascript,${encodeURIComponent(bug)}`;
    const stack = startStack(stateDir, ['--proxies=1'], { NODE_OPTIONS: preload });
    await stack.step('agent');
    const ended = await stack.stop('SIGUSR2');
    expect(ended.code).toBe(1);
    expect(ended.stderr).toContain('a bug');
    expect(ended.steps.at(-1)).toMatchObject({ step: 'failed' });
    expect(leftOf(stateDir)).toEqual([]);
  }, 60_000);

  it('with a folder in the place of Squid names the variable and what to do', async () => {
    const ended = await startStack(newStateDir(), [], { SQUID: '/usr' }).ended;
    expect(ended.code).toBe(1);
    expect(ended.stderr).toBe('SQUID: /usr is not a program that can be run\n');
  });
});
