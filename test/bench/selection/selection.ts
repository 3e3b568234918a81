/**
 * What one decision costs, without network and storage: the book in plain Node, with fleets of
 * several sizes, of which some part cools down for the target that is asked for.
 */
import { systemClock as clock } from '#shared/clock.ts';
import { atMost, type Figure } from '../figure.ts';
import { proxyEntry, USED_SHARE } from '../lease/fleet.ts';
import type { BenchOptions, Progress } from '../options.ts';
import { mean, median, percentile } from '../statistics.ts';
import { BenchBook, START_MS, TARGET } from './bench-book.ts';
import { type ScannedProxy, scanForBest } from './scan.ts';

const SIZES = [100, 1_000, 10_000, 25_000, 100_000];
/** Of the fleet, for the target. */
const COOLING = [0, 0.5, 0.9];
const ROUNDS = 3;
const WARM_UP = 3_000;
const ACQUIRES = 20_000;
const REFUSALS = 10_000;
const SCAN_MS = 300;
/** Leases that come and go; those of the used part stay. A tenth of the smallest fleet has room. */
const IN_FLIGHT = 8;
const MEAN_US_MAX = 10;
const P99_US_MAX = 25;

interface Times {
  readonly meanUs: number;
  readonly p99Us: number;
}

export async function benchSelection(
  progress: Progress,
  { rounds = ROUNDS }: BenchOptions,
): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const proxies of SIZES) {
    const of = proxies.toLocaleString('en-US');
    for (const cooling of COOLING) {
      progress(`${of} proxies, ${100 * cooling} % cooling`);
      const subjects = subjectsOf(proxies, cooling);
      const book: Times[] = [];
      const scan: number[] = [];
      for (let round = 0; round < rounds; round++) {
        book.push(timeBook(subjects.book));
        scan.push(timeScan(subjects.scanned));
      }
      const at = `${of} proxies, ${100 * cooling} % cooling: `;
      const isGoal = proxies === Math.max(...SIZES);
      figures.push(...figuresOf(`${at}acquire`, book, isGoal));
      const ratio = median(scan) / median(book.map(({ meanUs }) => meanUs));
      figures.push({ name: `${at}scan`, value: median(scan), unit: 'µs' });
      figures.push({ name: `${at}scan to the book`, value: ratio, unit: 'ratio' });
    }
    progress(`${of} proxies, all cooling`);
    const { book } = subjectsOf(proxies, 1);
    const refused = Array.from({ length: rounds }, () => timeRefusals(book));
    figures.push(...figuresOf(`${of} proxies, all cooling: refusal`, refused, false));
  }
  return figures;
}

function figuresOf(name: string, times: readonly Times[], isGoal: boolean): Figure[] {
  const meanUs = median(times.map((one) => one.meanUs));
  const p99Us = median(times.map((one) => one.p99Us));
  const names = { mean: `${name}, mean`, p99: `${name}, p99` };
  if (isGoal) {
    return [
      atMost(names.mean, meanUs, 'µs', MEAN_US_MAX),
      atMost(names.p99, p99Us, 'µs', P99_US_MAX),
    ];
  }
  return [
    { name: names.mean, value: meanUs, unit: 'µs' },
    { name: names.p99, value: p99Us, unit: 'µs' },
  ];
}

/** The same fleet twice, in the book and for the scan. */
function subjectsOf(
  proxies: number,
  cooling: number,
): { readonly book: BenchBook; readonly scanned: ScannedProxy[] } {
  const entries = Array.from({ length: proxies }, (_, index) => proxyEntry(index));
  // Spread over the fleet evenly, whatever the numbers of the entries stand for.
  const cools = (index: number) => ((index * 0.618_033_988_7) % 1) + cooling > 1 || cooling === 1;
  const book = new BenchBook(entries, cools);
  const held = Math.round(proxies * USED_SHARE);
  for (let lease = 0; lease < held; lease++) book.acquire(START_MS, undefined);
  const until = new Map([[TARGET, Infinity]]);
  const none = new Map<string, number>();
  const order = entries.toSorted(
    (a, b) => (a.latencyMillis ?? 0) - (b.latencyMillis ?? 0) || (a.name < b.name ? -1 : 1),
  );
  const used = new Set(order.slice(0, held));
  const scanned = entries.map((entry, index) => ({
    entry,
    cooldowns: cools(index) ? until : none,
    active: used.has(entry) ? 1 : 0,
  }));
  return { book, scanned };
}

function timeBook(book: BenchBook): Times {
  const us: number[] = [];
  let nowMs = START_MS;
  for (let turn = -WARM_UP; turn < ACQUIRES; turn++) {
    nowMs++;
    const startMs = clock.monotonicMs();
    const granted = book.acquire(nowMs, TARGET);
    const tookUs = (clock.monotonicMs() - startMs) * 1000;
    if (!granted) throw new Error('not granted');
    if (turn >= 0) us.push(tookUs);
    if (turn + WARM_UP >= IN_FLIGHT) book.release(nowMs, IN_FLIGHT);
  }
  for (let left = IN_FLIGHT; left > 0; left--) book.release(nowMs, 0);
  return timesOf(us);
}

function timeRefusals(book: BenchBook): Times {
  const us: number[] = [];
  for (let turn = -WARM_UP; turn < REFUSALS; turn++) {
    const startMs = clock.monotonicMs();
    const granted = book.acquire(START_MS + turn + WARM_UP, TARGET);
    const tookUs = (clock.monotonicMs() - startMs) * 1000;
    if (granted) throw new Error('granted');
    if (turn >= 0) us.push(tookUs);
  }
  return timesOf(us);
}

/** Mean of one decision in µs. */
function timeScan(proxies: readonly ScannedProxy[]): number {
  const startMs = clock.monotonicMs();
  let decisions = 0;
  let tookMs = 0;
  for (; tookMs < SCAN_MS; tookMs = clock.monotonicMs() - startMs) {
    if (scanForBest(proxies, TARGET, START_MS) === undefined) throw new Error('none is free');
    decisions++;
  }
  return (tookMs * 1000) / decisions;
}

const timesOf = (us: readonly number[]) => ({ meanUs: mean(us), p99Us: percentile(us, 0.99) });
