/**
 * The operator with fleets of several sizes: how much one proxy costs to bring up and to keep, in
 * API calls, status writes and CPU time, and whether that grows with the fleet.
 */

import { objectAt, stringAt, uidOf } from '#deploy/local/control-plane/api/object-meta.ts';
import { type JsonObject, objects } from '#deploy/local/control-plane/json.ts';
import { listAndWatch } from '#deploy/local/kube/watch.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { API_VERSION } from '#shared/crd/names.ts';
import { atMost, type Figure } from '../figure.ts';
import { type BenchWorld, openBenchWorld } from './world.ts';

interface Fleet {
  readonly external: number;
  readonly managed: number;
}

const SMALL: Fleet = { external: 500, managed: 0 };
const MIXED: Fleet = { external: 2_000, managed: 200 };
const LARGE: Fleet = { external: 5_000, managed: 0 };

const COLLECTION = `/apis/${API_VERSION}/namespaces/default/proxies`;
/** Creations under way at once. */
const CREATING = 50;
const CONVERGE_MS_MAX = 180_000;
const STEADY_MS = 20_000;
const POLL_MS = 100;
const MIB = 1024 * 1024;
/** Noise of a small fleet's fixed costs and of two busy cores. */
const GROWTH_MAX = 1.3;

interface Result {
  readonly proxies: number;
  readonly convergeMs: number;
  readonly convergeCpuMs: number;
  readonly calls: number;
  readonly statusWrites: number;
  readonly wastedWrites: number;
  readonly reconciles: number;
  readonly steadyCpuMs: number;
  readonly steadyCalls: number;
  readonly steadyProbes: number;
  readonly rssBytes: number;
}

export async function benchOperator(progress: (line: string) => void): Promise<Figure[]> {
  const measure = async (fleet: Fleet) => {
    progress(`${fleet.external} External and ${fleet.managed} Managed proxies …`);
    await using world = await openBenchWorld();
    return await measureFleet(world, fleet, progress);
  };
  const small = await measure(SMALL);
  const mixed = await measure(MIXED);
  const large = await measure(LARGE);
  const perProxy = (result: Result, key: 'convergeCpuMs' | 'calls') => result[key] / result.proxies;
  const perProbe = (result: Result) => result.steadyCpuMs / Math.max(result.steadyProbes, 1);
  const growth = (name: string, of: (result: Result) => number) =>
    atMost(`${name}, 5,000 proxies to 500`, of(large) / of(small), 'ratio', GROWTH_MAX);
  return [
    ...[small, mixed, large].flatMap(figuresOf),
    growth('CPU to bring one up', (result) => perProxy(result, 'convergeCpuMs')),
    growth('API calls to bring one up', (result) => perProxy(result, 'calls')),
    growth('CPU of one probe and all around it', perProbe),
  ];
}

function figuresOf(result: Result): Figure[] {
  const at = `${result.proxies} proxies:`;
  const { proxies, convergeMs, convergeCpuMs, calls, reconciles } = result;
  return [
    { name: `${at} until all are Ready`, value: convergeMs / 1000, unit: 's' },
    { name: `${at} reconciles`, value: reconciles / (convergeMs / 1000), unit: '1/s' },
    { name: `${at} CPU of one`, value: convergeCpuMs / proxies, unit: 'ms' },
    { name: `${at} API calls of one`, value: calls / proxies, unit: 'calls' },
    { name: `${at} status writes of one`, value: result.statusWrites / proxies, unit: 'writes' },
    atMost(`${at} status writes that changed nothing`, result.wastedWrites, 'writes', 0),
    {
      name: `${at} steady CPU`,
      value: (100 * result.steadyCpuMs) / STEADY_MS,
      unit: '% of a core',
    },
    { name: `${at} steady probes`, value: result.steadyProbes / (STEADY_MS / 1000), unit: '1/s' },
    { name: `${at} steady API calls`, value: result.steadyCalls / (STEADY_MS / 1000), unit: '1/s' },
    { name: `${at} resident`, value: result.rssBytes / MIB, unit: 'MiB' },
  ];
}

async function measureFleet(
  world: BenchWorld,
  fleet: Fleet,
  progress: (line: string) => void,
): Promise<Result> {
  await createFleet(world, fleet);
  const proxies = fleet.external + fleet.managed;
  const ready = new Set<string>();
  /** Changes that the agent made; those of their creation are not counted. */
  let changes = -proxies;
  const watching = new AbortController();
  const watch = listAndWatch(
    { client: world.kube, clock, signal: watching.signal },
    {
      path: COLLECTION,
      onChange(uid, object) {
        changes++;
        if (object !== undefined && isReady(object)) ready.add(uid);
      },
      onError: (error) => progress(`watch: ${String(error)}`),
    },
  );
  while (changes < 0) await clock.sleep(POLL_MS);
  const agent = world.startAgent();
  try {
    const before = await agent.usage();
    const startMs = clock.monotonicMs();
    await untilReady(ready, proxies, progress);
    const convergeMs = clock.monotonicMs() - startMs;
    const converged = await agent.usage();
    const { total, events, statusWrites, otherPatches } = { ...world.calls };
    const wastedWrites = statusWrites + otherPatches - changes;
    await clock.sleep(STEADY_MS);
    const steady = await agent.usage();
    return {
      proxies,
      convergeMs,
      convergeCpuMs: converged.cpuMs - before.cpuMs,
      calls: total - events,
      statusWrites,
      wastedWrites,
      reconciles: sumOf(converged.metrics, 'proxy_operator_reconcile_total'),
      steadyCpuMs: steady.cpuMs - converged.cpuMs,
      steadyCalls: world.calls.total - total,
      steadyProbes: probes(steady.metrics) - probes(converged.metrics),
      rssBytes: steady.rssBytes,
    };
  } finally {
    await agent.stop();
    watching.abort();
    await watch;
  }
}

async function untilReady(
  ready: ReadonlySet<string>,
  wanted: number,
  progress: (line: string) => void,
): Promise<void> {
  const deadlineMs = clock.monotonicMs() + CONVERGE_MS_MAX;
  let told = 0;
  while (ready.size < wanted) {
    if (clock.monotonicMs() > deadlineMs) throw new Error(`${ready.size} of ${wanted} are Ready`);
    await clock.sleep(POLL_MS);
    if (ready.size - told > wanted / 5) progress(`  ${ready.size} are Ready`);
    if (ready.size - told > wanted / 5) told = ready.size;
  }
}

async function createFleet({ kube, proxyPort }: BenchWorld, fleet: Fleet): Promise<void> {
  const externals = Array.from({ length: fleet.external }, (_, index) => ({
    name: `external-${index}`,
    spec: {
      mode: 'External',
      endpoint: { host: `127.2.${index >> 8}.${index & 0xff}`, port: proxyPort },
    },
  }));
  const managed = Array.from({ length: fleet.managed }, (_, index) => ({
    name: `managed-${index}`,
    spec: { provider: 'memory', port: proxyPort },
  }));
  const all = [...externals, ...managed];
  while (all.length > 0) {
    await Promise.all(
      all.splice(0, CREATING).map(({ name, spec }) => {
        const body = { apiVersion: API_VERSION, kind: 'Proxy', metadata: { name }, spec };
        return kube.request({ method: 'POST', path: COLLECTION, body });
      }),
    );
  }
}

function isReady(proxy: JsonObject): boolean {
  return (
    uidOf(proxy) !== '' &&
    objects(objectAt(proxy, 'status')['conditions']).some(
      (one) => stringAt(one, 'type') === 'Ready' && one['status'] === 'True',
    )
  );
}

const probes = (metrics: string) =>
  sumOf(metrics, 'proxy_operator_healthcheck_duration_seconds_count');

/** Sum over all label sets of a metric. */
function sumOf(metrics: string, name: string): number {
  const lines = metrics.split('\n').filter((line) => /^[^{ ]+/.exec(line)?.[0] === name);
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
