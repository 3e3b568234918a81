/**
 * `npm run test:crash`: kills the agent at each of its side effects, or the leader of two, and
 * counts the machines. Exit code 0 when all came out right, 1 when not, 2 for wrong arguments.
 */
import { parseArgs } from 'node:util';
import { systemClock as clock } from '#shared/clock.ts';
import { cannotRun } from '#test/integration/agent-world.ts';
import { newSeed, SEED_MAX } from '#test/integration/seed.ts';
import { whole } from '#test/whole.ts';
import { runCompeting } from './competing.ts';
import { runKills } from './kills.ts';
import type { Report } from './report.ts';
import { openGcpSite } from './sites/gcp.ts';
import { openKubernetesSite } from './sites/kubernetes.ts';

const KILLS_DEFAULT = 200;
/** Each takes longer: a lease has to run out. */
const COMPETING_DEFAULT = 40;
const KILLS_MAX = 100_000;
const PROGRESS_MS = 2_000;

const USAGE = `Usage: npm run test:crash -- [--kills N] [--seed S] [--provider NAME] [--competing]

Runs the agent as a process on the embedded control plane, kills it (SIGKILL) at each of its side
effects, starts it again, and counts the machines of each Proxy, all the time and at the end.

  --kills N    how often (default ${KILLS_DEFAULT}; ${COMPETING_DEFAULT} with --competing)
  --seed S     chooses what is killed when, and what users do (default: a new one, printed)
  --provider   where the machines are: kubernetes (default) or gcp, a fake of it
  --competing  two agents elect a leader, which is killed or frozen past its lease
  --help       this text
`;

const SITES = { kubernetes: openKubernetesSite, gcp: openGcpSite } as const;
type Provider = keyof typeof SITES;

interface Arguments {
  readonly kills: number;
  readonly seed: number;
  readonly competing: boolean;
  readonly provider: Provider;
}

process.exitCode = await main();

async function main(): Promise<number> {
  const given = readArguments(process.argv.slice(2));
  if (typeof given === 'number') return given;
  if (cannotRun !== undefined) {
    process.stderr.write(`test:crash ${cannotRun}\n`);
    return 1;
  }
  const stopping = new AbortController();
  const stop = () => stopping.abort(new Error('stopped by a signal'));
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, stop);
  const startedMs = clock.monotonicMs();
  let toldMs = startedMs;
  const say = (line: string) => {
    const seconds = Math.round((clock.monotonicMs() - startedMs) / 1000);
    process.stdout.write(`${String(seconds).padStart(4)} s  ${line}\n`);
  };
  const onProgress = (line: string) => {
    if (clock.monotonicMs() - toldMs < PROGRESS_MS) return;
    toldMs = clock.monotonicMs();
    say(line);
  };
  say(again(given));
  try {
    const options = { ...given, signal: stopping.signal, onProgress };
    const report = given.competing
      ? await runCompeting(options)
      : await runKills(options, SITES[given.provider]);
    tell(report, say);
    if (report.problems.length === 0) return 0;
    process.stderr.write(`${report.problems.join('\n')}\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  }
  process.stderr.write(`again: npm run test:crash -- ${again(given)}\n`);
  return 1;
}

function tell({ table, fleet, made, died, problems }: Report, say: (line: string) => void): void {
  process.stdout.write(`${table}\n`);
  const { create, edit, delete: deleted, kill } = fleet;
  say(`users: ${create} created, ${edit} edited, ${deleted} deleted, ${kill} machines killed`);
  say(`machines: ${made} made, ${died} ended by themselves`);
  say(problems.length === 0 ? 'all is well' : 'something is wrong:');
}

function again({ kills, seed, competing, provider }: Arguments): string {
  const where = provider === 'kubernetes' ? '' : ` --provider ${provider}`;
  return `--kills ${kills} --seed ${seed}${where}${competing ? ' --competing' : ''}`;
}

/** An exit code in place of arguments when there is nothing to run. */
function readArguments(argv: readonly string[]): Arguments | number {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        kills: { type: 'string' },
        seed: { type: 'string' },
        competing: { type: 'boolean', default: false },
        provider: { type: 'string', default: 'kubernetes' },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    const kills = values.competing ? COMPETING_DEFAULT : KILLS_DEFAULT;
    return {
      kills: whole('--kills', values.kills ?? String(kills), 1, KILLS_MAX),
      seed: whole('--seed', values.seed ?? String(newSeed()), 0, SEED_MAX),
      competing: values.competing,
      provider: providerOf(values.provider, values.competing),
    };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
}

/** Two agents that compete are played on one provider: what they share is at the API server. */
function providerOf(name: string, competing: boolean): Provider {
  const known = competing ? ['kubernetes'] : Object.keys(SITES);
  if (name === 'kubernetes' || (name === 'gcp' && !competing)) return name;
  throw new Error(`--provider: "${name}" is not among ${known.join(', ')}`);
}
