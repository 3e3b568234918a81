/**
 * Leases per second, beside what one would take instead. All servers are up at once and are
 * measured in turn, each for a short while in every round: what else the machine does in that time
 * falls on all of them. The figures are medians of the rounds; only their ratios say something.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure } from '../figure.ts';
import type { BenchOptions, Progress } from '../options.ts';
import { scratchFolder } from '../scratch.ts';
import { median } from '../statistics.ts';
import { type Generator, type Measurement, startGenerator } from './generator.ts';
import { type Contender, contenders, type FoundOf, goals } from './plan.ts';
import { profileEdge } from './profile.ts';
import type { Server } from './server.ts';

const ROUNDS = 5;
const SECONDS = 2;
const WARM_UP_MS = 1_000;
const PROFILE_SECONDS = 4;
/** Fleets whose profile is shown. */
const PROFILED = [
  { proxies: 1_000, shards: 1, connections: 64 },
  { proxies: 25_000, shards: 1, connections: 64 },
];

/** One server with a number of connections, and what was measured so far. */
interface Entry {
  readonly contender: Contender;
  readonly server: Server;
  readonly connections: number;
  readonly measured: Measurement[];
}

export async function benchLease(progress: Progress, options: BenchOptions): Promise<Figure[]> {
  const { rounds = ROUNDS, seconds = SECONDS, only = '', edge } = options;
  using folder = scratchFolder();
  await using generator = startGenerator();
  const profile = () => tellProfiles(generator, folder.path, progress, options);
  if (options.profile === true) {
    await profile();
    return [];
  }
  const chosen = contenders(edge).filter(({ name }) => name.includes(only));
  if (chosen.length === 0) throw new Error(`no server has "${only}" in its name`);
  let figures: Figure[];
  {
    await using servers = new AsyncDisposableStack();
    const entries: Entry[] = [];
    for (const [index, contender] of chosen.entries()) {
      progress(`starting: ${contender.name}`);
      const dir = join(folder.path, String(index));
      mkdirSync(dir);
      const server = servers.use(await contender.start({ dir, hold: generator.hold }));
      for (const connections of contender.connections) {
        entries.push({ contender, server, connections, measured: [] });
      }
    }
    for (let round = 1; round <= rounds; round++) {
      progress(`round ${round} of ${rounds}`);
      // There and back, so that nobody always follows the same one.
      for (const entry of round % 2 === 1 ? entries : entries.toReversed()) {
        const windowMs = seconds * 1000;
        await measure(generator, entry, { warmUpMs: WARM_UP_MS, windowMs }, progress);
      }
    }
    figures = [...entries.flatMap(figuresOf), ...goals(foundIn(entries))];
  }
  if (figures.some(({ ok }) => ok === false)) {
    progress('A goal was missed. This is where the time of the edge goes:');
    await profile();
  }
  return figures;
}

async function measure(
  generator: Generator,
  { contender, server, connections, measured }: Entry,
  times: { readonly warmUpMs: number; readonly windowMs: number },
  progress: Progress,
): Promise<void> {
  await server.refresh();
  const result = await generator
    .run(server, { connections, ...times })
    .catch((error: unknown) => Promise.reject(new Error(contender.name, { cause: error })));
  measured.push(result);
  const pairs = Math.round(perSecond(result));
  const cpu = Math.round(result.cpuUsPerRequest);
  progress(
    `  ${contender.name}, ${connections} connections: ${pairs} pairs/s, ${cpu} µs CPU a request`,
  );
}

const perSecond = ({ pairs, windowMs }: Measurement) => (pairs * 1000) / windowMs;

const medianOf = ({ measured }: Entry, of: (result: Measurement) => number) =>
  median(measured.map(of));

function foundIn(entries: readonly Entry[]): FoundOf {
  return (name, connections) =>
    entries
      .find((one) => one.contender.name === name && one.connections === connections)
      ?.measured.map((one) => ({ ...one, pairsPerSecond: perSecond(one) }));
}

function figuresOf(entry: Entry): Figure[] {
  const at = `${entry.contender.name}, ${entry.connections} connections:`;
  const figure = (name: string, unit: string, of: (result: Measurement) => number) => ({
    name: `${at} ${name}`,
    value: medianOf(entry, of),
    unit,
  });
  return [
    figure('acquire and release', 'pairs/s', perSecond),
    figure('acquire, p50', 'ms', ({ acquire }) => acquire.p50Ms),
    figure('acquire, p99', 'ms', ({ acquire }) => acquire.p99Ms),
    figure('release, p50', 'ms', ({ release }) => release.p50Ms),
    figure('release, p99', 'ms', ({ release }) => release.p99Ms),
    figure('CPU of a request', 'µs', ({ cpuUsPerRequest }) => cpuUsPerRequest),
  ];
}

async function tellProfiles(
  generator: Generator,
  folder: string,
  progress: Progress,
  { edge: root, seconds = PROFILE_SECONDS }: BenchOptions,
): Promise<void> {
  for (const [index, fleet] of PROFILED.entries()) {
    progress(`${fleet.proxies} proxies, ${fleet.connections} connections:`);
    const times = { warmUpMs: WARM_UP_MS, windowMs: seconds * 1000 };
    const dir = join(folder, `profile-${index}`);
    for (const line of await profileEdge(generator, { dir, root, ...fleet, ...times })) {
      progress(`  ${line}`);
    }
  }
}
