/**
 * `npm run bench -- NAME [--json]`: figures of one part, each beside something that was measured in
 * the same run, as a machine's speed is nobody's merit. Exit code 1 when a goal was missed.
 */
import { parseArgs } from 'node:util';
import type { Figure } from './figure.ts';
import { printFigures } from './figure.ts';
import { benchOperator } from './operator/operator.ts';

/** Tells how far it is, on stderr. */
export type Progress = (line: string) => void;

const BENCHES: Readonly<Record<string, (progress: Progress) => Promise<readonly Figure[]>>> = {
  operator: benchOperator,
};

const USAGE = `Usage: npm run bench -- NAME [--json]

  operator   the agent with 500, 2,200 and 5,000 proxies: how fast it converges, what one costs

  --json     one JSON document on standard output
  --help     this text
`;

process.exitCode = await main();

async function main(): Promise<number> {
  const options = { json: { type: 'boolean' }, help: { type: 'boolean' } } as const;
  let given: ReturnType<typeof parse>;
  function parse() {
    return parseArgs({ options, allowPositionals: true });
  }
  try {
    given = parse();
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    return 2;
  }
  if (given.values.help === true) {
    process.stdout.write(USAGE);
    return 0;
  }
  const [name = '', ...more] = given.positionals;
  const bench = Object.hasOwn(BENCHES, name) ? BENCHES[name] : undefined;
  if (bench === undefined || more.length > 0) {
    process.stderr.write(`"${[name, ...more].join(' ')}" is no benchmark\n${USAGE}`);
    return 2;
  }
  const figures = await bench((line) => process.stderr.write(`${line}\n`));
  printFigures(figures, given.values.json === true);
  return figures.some((figure) => figure.ok === false) ? 1 : 0;
}
