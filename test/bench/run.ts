/**
 * `npm run bench -- NAME [--json]`: figures of one part, each beside something that was measured in
 * the same run, as a machine's speed is nobody's merit. Exit code 1 when a goal was missed.
 */
import { parseArgs } from 'node:util';
import type { Figure } from './figure.ts';
import { printFigures } from './figure.ts';
import type { BenchOptions, Progress } from './options.ts';
import { exitOnSignals } from './scratch.ts';

type Bench = (progress: Progress, options: BenchOptions) => Promise<readonly Figure[]>;

/** Each is loaded only when it runs, as some bring much along. */
const BENCHES: Readonly<Record<string, () => Promise<Bench>>> = {
  operator: async () => (await import('./operator/operator.ts')).benchOperator,
  lease: async () => (await import('./lease/lease.ts')).benchLease,
  libvirt: async () => (await import('./libvirt/libvirt.ts')).benchLibvirt,
  memory: async () => (await import('./memory/memory.ts')).benchMemory,
  selection: async () => (await import('./selection/selection.ts')).benchSelection,
};

const USAGE = `Usage: npm run bench -- NAME [options]

  operator   the agent with 500, 2,200 and 5,000 proxies: how fast it converges, what one costs
  lease      leases from the edge under workerd, beside an object that does nothing, one write per
             request, Redis, PostgreSQL and a scan in memory, all behind the same API (9 minutes)
  libvirt    the libvirt client of the kvm provider beside virsh, over the same SSH: uploads, calls
  memory     what the ledger holds in memory with 25,000 proxies and 50,000 leases
  selection  the book alone, with up to 100,000 proxies and most of them cooling down

  --json         one JSON document on standard output
  --help         this text

Of lease and libvirt:
  --rounds N     times that each thing is measured

Of lease:
  --seconds N    length of each measurement, 2 unless told otherwise
  --only TEXT    only the servers with TEXT in their names, such as "edge, 1,000"
  --edge FOLDER  measure the edge of another checkout
  --profile      tell which functions of the edge the time goes to, and measure nothing else
`;

const OPTIONS = {
  json: { type: 'boolean' },
  help: { type: 'boolean' },
  rounds: { type: 'string' },
  seconds: { type: 'string' },
  only: { type: 'string' },
  edge: { type: 'string' },
  profile: { type: 'boolean' },
} as const;

process.exitCode = await main();

async function main(): Promise<number> {
  let given: ReturnType<typeof parse>;
  function parse() {
    return parseArgs({ options: OPTIONS, allowPositionals: true });
  }
  try {
    given = parse();
  } catch (error) {
    return misused(error instanceof Error ? error.message : String(error));
  }
  const { json, help, rounds, seconds, ...options } = given.values;
  if (help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  const [name = '', ...more] = given.positionals;
  const load = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
  if (load === undefined || more.length > 0) {
    return misused(`"${[name, ...more].join(' ')}" is no benchmark`);
  }
  const numbers = { rounds: numberOf(rounds), seconds: numberOf(seconds) };
  if (Object.values(numbers).some((value) => value !== undefined && !(value > 0))) {
    return misused('--rounds and --seconds take a number above 0');
  }
  exitOnSignals();
  const bench = await load();
  const progress = (line: string) => process.stderr.write(`${line}\n`);
  const figures = await bench(progress, { ...options, ...numbers });
  printFigures(figures, json === true);
  return figures.some((figure) => figure.ok === false) ? 1 : 0;
}

function numberOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text);
}

function misused(fault: string): number {
  process.stderr.write(`${fault}\n${USAGE}`);
  return 2;
}
