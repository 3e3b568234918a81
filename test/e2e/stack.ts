/** A whole stack as a process of its own, started as `npm start` does, watched through its JSON. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { createKubeClient, type KubeClient, tokenAccess } from '#deploy/local/kube/client.ts';
import { findSquid } from '#deploy/local/node/squid-image.ts';
import { markedProcesses, type ProcessIdentity } from '#deploy/local/process/identity.ts';
import { createLeaseClient, type LeaseClient } from '#shared/client/lease-client.ts';
import { systemClock } from '#shared/clock.ts';
import { eventually } from '#test/integration/eventually.ts';

export const ROOT = resolve(import.meta.dirname, '../..');
/** First start of a cold machine included. */
const START_TIMEOUT_MS = 90_000;

/** Why a stack cannot run here; undefined when it can. */
export const cannotRun: string | undefined =
  findSquid(process.env['PATH'] ?? '') === undefined ? 'needs squid' : undefined;

/** Name of a group of tests that need a stack; says why when they are skipped. */
export const whole = (name: string) => (cannotRun === undefined ? name : `${name} (${cannotRun})`);

const stepSchema = z.looseObject({ step: z.string() });
export type StepLine = z.infer<typeof stepSchema>;

export interface Ended {
  /** Exit code as a shell has it. */
  readonly code: number;
  readonly stderr: string;
  readonly steps: readonly StepLine[];
  readonly tookMs: number;
}

export interface Stack {
  readonly stateDir: string;
  readonly process: ChildProcess;
  /** Resolves with a step's line once it is printed; rejects when the start ends before. */
  step(name: string): Promise<StepLine>;
  readonly ended: Promise<Ended>;
  /** Sends a signal and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Ended>;
  kube(): KubeClient;
  leases(): LeaseClient;
  edgeUrl(): string;
  /** The process with a word in its command line; throws when there is none. */
  processNamed(word: string): ProcessIdentity;
}

const open: Stack[] = [];
const folders: string[] = [];

/** A folder for a state directory, removed by `cleanUp`. */
export function newStateDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'egress-e2e-'));
  folders.push(folder);
  return join(folder, 'state');
}

/** Ends what tests left running, and removes their folders. */
export async function cleanUp(): Promise<void> {
  for (const stack of open.splice(0)) await stack.stop('SIGTERM');
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/** Everything that a stack started and that still runs, found by its mark. */
export function leftOf(stateDir: string): ProcessIdentity[] {
  const file = join(stateDir, 'stack-id');
  return existsSync(file) ? markedProcesses(readFileSync(file, 'utf8')) : [];
}

/** Starts a stack on ports of its own. */
export function startStack(
  stateDir: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Stack {
  const flags = ['--json', '--edge-port=0', '--api-port=0', '--metrics-port=0'];
  const command = [join(ROOT, 'deploy/local/start.ts'), ...flags, `--state-dir=${stateDir}`];
  const child = spawn(process.execPath, [...command, ...args], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const startedMs = systemClock.monotonicMs();
  const steps: StepLine[] = [];
  let stderr = '';
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) steps.push(stepSchema.parse(JSON.parse(line)));
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  let result: Ended | undefined;
  const ended = new Promise<Ended>((done) => {
    child.once('close', (code, signal) => {
      const tookMs = systemClock.monotonicMs() - startedMs;
      result = {
        code: code ?? 128 + (signal === null ? 0 : constants.signals[signal]),
        stderr,
        steps,
        tookMs,
      };
      done(result);
    });
  });
  const stack: Stack = {
    stateDir,
    process: child,
    ended,
    step: (name) =>
      eventually(() => {
        const found = steps.find((line) => line.step === name);
        if (found !== undefined) return found;
        throw new Error(`no step "${name}" yet: ${stderr || JSON.stringify(steps.at(-1))}`);
      }, START_TIMEOUT_MS),
    async stop(signal = 'SIGINT') {
      child.kill(signal);
      return ended;
    },
    kube: () => kubeOf(stateDir),
    edgeUrl: () => z.string().parse(steps.find((line) => line.step === 'edge')?.['url']),
    processNamed(word) {
      const found = leftOf(stateDir).find(({ pid }) =>
        readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(word),
      );
      if (found === undefined) throw new Error(`no process ${word}`);
      return found;
    },
    leases() {
      const file = readFileSync(join(stateDir, 'tokens.json'), 'utf8');
      const token = z.object({ discovery: z.string() }).parse(JSON.parse(file)).discovery;
      return createLeaseClient({ baseUrl: stack.edgeUrl(), token });
    },
  };
  open.push(stack);
  return stack;
}

const kubeconfigSchema = z.object({
  clusters: z.array(
    z.object({
      cluster: z.object({ server: z.string(), 'certificate-authority-data': z.string() }),
    }),
  ),
  users: z.array(z.object({ user: z.object({ token: z.string() }) })),
});

/** A client with the kubeconfig that a person would use. */
function kubeOf(stateDir: string): KubeClient {
  const text = readFileSync(join(stateDir, 'kubeconfig'), 'utf8');
  const { clusters, users } = kubeconfigSchema.parse(parse(text));
  const [cluster, user] = [clusters[0]?.cluster, users[0]?.user];
  if (cluster === undefined || user === undefined) throw new Error('an empty kubeconfig');
  const ca = Buffer.from(cluster['certificate-authority-data'], 'base64').toString();
  return createKubeClient(tokenAccess(cluster.server, ca, user.token));
}
