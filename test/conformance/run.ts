/**
 * `npm run test:conformance -- --provider NAME`: the rules of the provider contract on one backend.
 * Exit code 0 when it keeps them, 1 when it does not, 2 for wrong arguments.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

const ROOT = resolve(import.meta.dirname, '../..');
const VITEST = 'node_modules/vitest/vitest.mjs';
const PROVIDERS = ['memory', 'kubernetes', 'gcp', 'kvm'];

const USAGE = `Usage: npm run test:conformance -- --provider NAME

  --provider NAME  one of ${PROVIDERS.join(', ')}
  --help           this text
`;

process.exitCode = await main(process.argv.slice(2));

async function main(argv: readonly string[]): Promise<number> {
  const provider = readProvider(argv);
  if (typeof provider === 'number') return provider;
  const file = `test/conformance/${provider}.test.ts`;
  const args = [VITEST, 'run', '--project', 'node', '--reporter=verbose'];
  args.push('--reporter=./test/reporter.ts', file);
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: 'inherit' });
  // A terminal sends Ctrl-C to the child as well; anything else must be passed on.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  const [code] = await once(child, 'exit');
  return typeof code === 'number' ? code : 1;
}

/** An exit code in place of a name when there is nothing to run. */
function readProvider(argv: readonly string[]): string | number {
  try {
    const { values } = parseArgs({
      args: [...argv],
      options: { provider: { type: 'string' }, help: { type: 'boolean', default: false } },
    });
    if (values.help) {
      process.stdout.write(USAGE);
      return 0;
    }
    const { provider } = values;
    if (provider !== undefined && PROVIDERS.includes(provider)) return provider;
    const given = provider === undefined ? 'is missing' : `"${provider}" is unknown`;
    throw new Error(`--provider: ${given}; known are ${PROVIDERS.join(', ')}`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`);
    return 2;
  }
}
