/** The main job, end to end, by the command that a newcomer types. Real parts throughout. */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

const ROOT = resolve(import.meta.dirname, '../..');
const START_TIMEOUT_MS = 110_000;
const stateDir = mkdtempSync(join(tmpdir(), 'egress-e2e-'));
afterAll(() => rmSync(stateDir, { recursive: true, force: true }));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function start(args: readonly string[]): Promise<Ended> {
  const command = [join(ROOT, 'deploy/local/start.ts'), ...args];
  const ports = ['--edge-port=0', '--api-port=0', '--metrics-port=0'];
  return new Promise((done) => {
    const options = { cwd: ROOT, timeout: START_TIMEOUT_MS, killSignal: 'SIGTERM' } as const;
    execFile(process.execPath, [...command, ...ports], options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
      done({ code, stdout, stderr });
    });
  });
}

const fetchedSchema = z.object({
  step: z.literal('fetched'),
  status: z.literal(200),
  egressIP: z.string().regex(/^127\.42\./),
  leaseID: z.string().min(1),
  proxy: z.string(),
});
const readySchema = z.object({
  step: z.literal('ready'),
  proxies: z.array(z.object({ proxy: z.string(), ip: z.string(), phase: z.literal('Ready') })),
});

/** The last and the ready line of a run's JSON. */
function journeyOf(stdout: string) {
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const ready = lines.find((line) => line.step === 'ready');
  return { fetched: fetchedSchema.parse(lines.at(-1)), ready: readySchema.parse(ready) };
}

describe.skipIf(!existsSync('/usr/sbin/squid'))('npm start (needs squid)', () => {
  it(
    'makes proxies, leases one and fetches a page from its own egress address, twice',
    async () => {
      const first = await start(['--once', '--json', `--state-dir=${stateDir}`]);
      expect(first.code, first.stderr).toBe(0);
      const { fetched, ready } = journeyOf(first.stdout);
      const leased = ready.proxies.find(({ proxy }) => proxy === fetched.proxy);
      expect(fetched.egressIP).toBe(leased?.ip);
      const tokens = join(stateDir, 'tokens.json');
      expect(Object.keys(JSON.parse(readFileSync(tokens, 'utf8'))).sort()).toEqual([
        'agent',
        'discovery',
      ]);
      expect(statSync(tokens).mode & 0o077).toBe(0);

      const again = await start(['--once', '--json', `--state-dir=${stateDir}`]);
      expect(again.code, again.stderr).toBe(0);
      expect(journeyOf(again.stdout).fetched.status).toBe(200);
    },
    2 * START_TIMEOUT_MS,
  );

  it('names a flag that it does not know and ends with 2', async () => {
    const ended = await start(['--proxy=3']);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('--proxy');
  });
});
