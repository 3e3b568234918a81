/** The main job, end to end, by the program that a newcomer starts. Real parts throughout. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { cannotRun, cleanUp, type Ended, leftOf, newStateDir, startStack, whole } from './stack.ts';

/** A fault must be told within this time. */
const FAULT_MS_MAX = 5_000;
/** A start on an empty state directory must be through within this time, set-up apart. */
const ONCE_MS_MAX = 30_000;

const fetchedSchema = z.object({
  step: z.literal('fetched'),
  status: z.literal(200),
  egressIP: z.string().regex(/^127\.42\./),
  leaseID: z.string().min(1),
  proxy: z.string(),
});
const readySchema = z.object({
  proxies: z.array(z.object({ proxy: z.string(), ip: z.string(), phase: z.literal('Ready') })),
});

afterEach(cleanUp, 30_000);

function journeyOf({ code, stderr, steps }: Ended) {
  expect(code, stderr).toBe(0);
  const ready = steps.find(({ step }) => step === 'ready');
  return { fetched: fetchedSchema.parse(steps.at(-1)), ready: readySchema.parse(ready) };
}

describe.skipIf(cannotRun !== undefined)(whole('npm start'), () => {
  it('makes proxies, leases one, fetches a page from its own address, and finds it all again', async () => {
    const stateDir = newStateDir();
    const first = await startStack(stateDir, ['--once', '--proxies=2']).ended;
    const { fetched, ready } = journeyOf(first);
    expect(first.tookMs).toBeLessThan(ONCE_MS_MAX);
    expect(ready.proxies.map(({ proxy }) => proxy)).toEqual(['sample-1', 'sample-2']);
    expect(fetched.egressIP).toBe(ready.proxies.find((p) => p.proxy === fetched.proxy)?.ip);
    for (const secret of ['tokens.json', 'kubeconfig', 'edge.env']) {
      expect(statSync(join(stateDir, secret)).mode & 0o077, secret).toBe(0);
    }
    expect(leftOf(stateDir)).toEqual([]);

    const again = startStack(stateDir, ['--proxies=2']);
    await again.step('fetched');
    const lease = await again.leases().get(fetched.leaseID);
    expect(lease.proxy.host).toBe(fetched.egressIP);
    const ended = await again.stop();
    expect(journeyOf({ ...ended, steps: ended.steps.slice(0, -1) }).ready).toEqual(ready);
    expect(leftOf(stateDir)).toEqual([]);
  }, 120_000);

  it('keeps secrets out of its output and logs', async () => {
    const stateDir = newStateDir();
    const ended = await startStack(stateDir, ['--once', '--proxies=1']).ended;
    journeyOf(ended);
    const tokens = readFileSync(join(stateDir, 'tokens.json'), 'utf8');
    const secrets = Object.values(z.record(z.string(), z.string()).parse(JSON.parse(tokens)));
    const logs = ['agent.log', 'edge.log'].map((name) => join(stateDir, 'logs', name));
    const texts = [JSON.stringify(ended), ...logs.map((file) => readFileSync(file, 'utf8'))];
    for (const text of texts) {
      for (const secret of secrets) expect(text).not.toContain(secret);
    }
  }, 60_000);

  it('says which port is in use', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    for (const flag of ['--edge-port', '--api-port', '--metrics-port']) {
      await expectFault([`${flag}=${port}`], {}, `${flag}: port ${port} is in use`);
    }
    await new Promise((resolve) => server.close(resolve));
  }, 30_000);

  it('says that its state directory is in use, and by whom', async () => {
    const stateDir = newStateDir();
    const first = startStack(stateDir, ['--proxies=1']);
    await first.step('starting');
    const second = await startStack(stateDir).ended;
    expect(second.code).toBe(1);
    expect(second.stderr).toBe(
      `--state-dir: ${stateDir} is in use by pid ${first.process.pid}; ` +
        'end it, or choose another folder\n',
    );
    await first.step('fetched');
    await first.stop();
  }, 60_000);
});

async function expectFault(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  message: string | RegExp,
  code = 1,
  stateDir = newStateDir(),
): Promise<void> {
  const ended = await startStack(stateDir, args, env).ended;
  if (typeof message === 'string') expect(ended.stderr).toContain(message);
  else expect(ended.stderr).toMatch(message);
  expect(ended.stderr.trim().split('\n').length).toBeLessThanOrEqual(code === 2 ? 2 : 1);
  expect(ended.code).toBe(code);
  expect(ended.tookMs).toBeLessThan(FAULT_MS_MAX);
  expect(leftOf(stateDir)).toEqual([]);
}

describe('npm start refuses in one clear line', () => {
  it('a flag that it does not know', () => expectFault(['--proxy=3'], {}, '--proxy', 2));

  it('a squid that is not there', () => {
    const message = 'SQUID: /no/such/squid is not a program that can be run';
    return expectFault([], { SQUID: '/no/such/squid' }, message);
  });

  it('a kubeconfig that does not exist, is none, or leads nowhere', async () => {
    const folder = newStateDir();
    await expectFault(['--kubeconfig=/no/such/file'], {}, '--kubeconfig: /no/such/file cannot');
    const file = `${folder}-kubeconfig`;
    writeFileSync(file, 'token: {secret-in-here');
    await expectFault([`--kubeconfig=${file}`], {}, 'is not a kubeconfig');
    const cluster = { name: 'c', cluster: { server: 'https://127.0.0.1:9' } };
    const context = { name: 'x', context: { cluster: 'c', user: 'u' } };
    const user = { name: 'u', user: { token: 't' } };
    const config = { clusters: [cluster], users: [user], contexts: [context] };
    writeFileSync(file, JSON.stringify({ ...config, 'current-context': 'x' }));
    await expectFault([`--kubeconfig=${file}`], {}, 'https://127.0.0.1:9 does not answer');
  }, 30_000);

  it('a state directory that cannot be written', async () => {
    const file = `${newStateDir()}-file`;
    writeFileSync(file, '');
    const message = /^--state-dir: .* is not a folder that can be written/;
    await expectFault([], {}, message, 1, join(file, 'state'));
  });

  it('assets that are not there', () =>
    expectFault([], { KUBEBUILDER_ASSETS: '/no/assets' }, 'KUBEBUILDER_ASSETS: /no/assets has no'));
});
