/**
 * `npm run test:ledger`: many clients at once on the edge, which is killed again and again, and a
 * checker over all that they saw. Exit code 0 when nothing is wrong and enough happened to say so,
 * 1 when not, 2 for wrong arguments.
 */
import { parseArgs } from 'node:util';
import { systemClock as clock } from '#shared/clock.ts';
import { newSeed, SEED_MAX } from '#test/integration/seed.ts';
import { whole } from '#test/whole.ts';
import { type Report, runLedger } from './report.ts';

const OPERATIONS_DEFAULT = 100_000;
const OPERATIONS_MAX = 10_000_000;
const CLIENTS_DEFAULT = 16;
const CLIENTS_MAX = 1_000;
/** A kill for so many operations, unless it is said how many. */
const OPERATIONS_PER_KILL = 2_000;
const SHARDS_DEFAULT = 1;
const SHARDS_MAX = 64;

const USAGE = `Usage: npm run test:ledger -- [--operations N] [--clients N] [--kills N] [--shards N]
                              [--seed S] [--json]

Runs the edge under workerd on a small, contended fleet, lets clients lease from it while agents
change the fleet and workerd is killed (SIGKILL) and started again, and checks all the answers.

  --operations N  answered operations of clients (default ${OPERATIONS_DEFAULT})
  --clients N     at the same time (default ${CLIENTS_DEFAULT})
  --kills N       how often workerd is killed (default: once for ${OPERATIONS_PER_KILL} operations)
  --shards N      LEASE_SHARDS (default ${SHARDS_DEFAULT})
  --seed S        what is chosen by chance (default: a new one, printed); the timing of the
                  processes stays their own, so that a seed does not repeat a history
  --json          one JSON document on standard output, progress on standard error
  --help          this text
`;

interface Arguments {
  readonly operations: number;
  readonly clients: number;
  readonly kills: number;
  readonly shards: number;
  readonly seed: number;
  readonly json: boolean;
}

process.exitCode = await main();

async function main(): Promise<number> {
  const given = readArguments(process.argv.slice(2));
  if (typeof given === 'number') return given;
  const stopping = new AbortController();
  const stop = () => stopping.abort(new Error('stopped by a signal'));
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.once(name, stop);
  const startedMs = clock.monotonicMs();
  const out = given.json ? process.stderr : process.stdout;
  const onProgress = (line: string) => {
    const seconds = Math.round((clock.monotonicMs() - startedMs) / 1000);
    out.write(`${String(seconds).padStart(4)} s  ${line}\n`);
  };
  onProgress(again(given));
  try {
    const report = await runLedger({ ...given, signal: stopping.signal, onProgress });
    if (given.json) process.stdout.write(`${JSON.stringify(report)}\n`);
    else process.stdout.write(textOf(report));
    if (report.excerpts.length + report.missing.length === 0) return 0;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  }
  process.stderr.write(`again: npm run test:ledger -- ${again(given)}\n`);
  return 1;
}

function textOf(report: Report): string {
  const { answered, unknown, kills, seconds, shards, answers, facts, violations } = report;
  const list = (counts: Readonly<Record<string, number>>, indent: string) =>
    Object.entries(counts).map(([what, count]) => `${indent}${String(count).padStart(7)}  ${what}`);
  const wrong = Object.entries(violations).map(([rule, count]) => `${rule} ${count}`);
  return `${[
    `${answered} operations answered in ${Math.round(seconds)} s on ${shards} shards, ` +
      `${unknown} unknown, ${kills} kills; clocks within ${report.slackMs.toFixed(1)} ms`,
    ...Object.entries(answers).flatMap(([kind, counts]) => [kind, ...list(counts, '  ')]),
    'certain enough to be judged',
    ...list(facts, '  '),
    ...report.excerpts.map((excerpt) => `\n${excerpt}`),
    ...report.missing.map((what) => `too few to mean anything: ${what}`),
    wrong.length === 0 ? 'no rule was broken' : `broken: ${wrong.join(', ')}`,
  ].join('\n')}\n`;
}

function again({ operations, clients, kills, shards, seed }: Arguments): string {
  const counts = `--operations ${operations} --clients ${clients} --kills ${kills}`;
  return `${counts} --shards ${shards} --seed ${seed}`;
}

/** An exit code in place of arguments when there is nothing to run. */
function readArguments(argv: readonly string[]): Arguments | number {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: {
        operations: { type: 'string', default: String(OPERATIONS_DEFAULT) },
        clients: { type: 'string', default: String(CLIENTS_DEFAULT) },
        kills: { type: 'string' },
        shards: { type: 'string', default: String(SHARDS_DEFAULT) },
        seed: { type: 'string' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    if (values.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    const operations = whole('--operations', values.operations, 1, OPERATIONS_MAX);
    const kills = values.kills ?? String(Math.floor(operations / OPERATIONS_PER_KILL));
    return {
      operations,
      clients: whole('--clients', values.clients, 1, CLIENTS_MAX),
      kills: whole('--kills', kills, 0, operations),
      shards: whole('--shards', values.shards, 1, SHARDS_MAX),
      seed: whole('--seed', values.seed ?? String(newSeed()), 0, SEED_MAX),
      json: values.json,
    };
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
}
