/** Which servers are measured with how many connections, and what is asked of their figures. */
import { atLeast, atMost, type Figure } from '../figure.ts';
import { median } from '../statistics.ts';
import { startEdgeServer } from './edge-server.ts';
import { startNodeServer } from './node-server.ts';
import type { StartServer } from './server.ts';
import { startWorkerServer } from './worker-server.ts';

const FEW = 16;
const MANY = 64;

/** Sizes at which the servers stand beside each other: one object's, and one that needs shards. */
const COMMON = 1_000;
const HUGE = 100_000;

export interface Contender {
  readonly name: string;
  readonly connections: readonly number[];
  readonly start: StartServer;
}

/** What was found in one round. */
export interface Found {
  readonly pairsPerSecond: number;
  readonly cpuUsPerRequest: number;
}

/** Of all rounds; undefined when it was not measured, as only some were to be. */
export type FoundOf = (name: string, connections: number) => readonly Found[] | undefined;

const count = (value: number) => value.toLocaleString('en-US');

const edgeName = (proxies: number, shards: number) =>
  `edge, ${count(proxies)} proxies, ${shards} shard${shards === 1 ? '' : 's'}`;
const nodeName = (what: string, proxies: number) => `${what}, ${count(proxies)} proxies`;

const NOTHING = 'object that does nothing';
const INSERT = 'object that writes for each request';
const REDIS = 'Redis';
const POSTGRES = 'PostgreSQL';
const SCAN = 'scan in memory';

export function contenders(root: string | undefined): Contender[] {
  const edge = (proxies: number, shards: number, ...connections: number[]): Contender => ({
    name: edgeName(proxies, shards),
    connections,
    start: (deps) => startEdgeServer(deps, { proxies, shards, root }),
  });
  const node = (name: string, ledger: 'redis' | 'postgres' | 'scan') => [
    {
      name: nodeName(name, COMMON),
      connections: [FEW, MANY],
      start: (deps) => startNodeServer(deps, ledger, COMMON),
    } satisfies Contender,
    {
      name: nodeName(name, HUGE),
      connections: [MANY],
      start: (deps) => startNodeServer(deps, ledger, HUGE),
    } satisfies Contender,
  ];
  const worker = (name: string, kind: 'nothing' | 'insert'): Contender => ({
    name,
    connections: [FEW, MANY],
    start: (deps) => startWorkerServer(deps, kind),
  });
  // Those that are compared stand near each other, so that they have the machine in one state.
  return [
    edge(10_000, 1, MANY),
    edge(25_000, 1, FEW, MANY),
    edge(100, 1, FEW, MANY),
    edge(COMMON, 1, FEW, MANY),
    worker(NOTHING, 'nothing'),
    worker(INSERT, 'insert'),
    ...node(REDIS, 'redis'),
    ...node(POSTGRES, 'postgres'),
    ...node(SCAN, 'scan'),
    edge(HUGE, 4, MANY),
    edge(100, 4, MANY),
    edge(COMMON, 4, FEW, MANY),
    edge(10_000, 4, MANY),
    edge(25_000, 4, MANY),
  ];
}

/**
 * The goals, as far as what they compare was measured. Compared is what was found in the same
 * round, as another round may have had less of the machine.
 */
export function goals(of: FoundOf): Figure[] {
  const figures: Figure[] = [];
  const compare = (
    [name, other, connections]: readonly [string, string, number],
    key: keyof Found,
    judge: typeof atLeast,
    bound: number,
  ) => {
    const [a, b] = [of(name, connections), of(other, connections)];
    if (a === undefined || b === undefined) return;
    const what = key === 'cpuUsPerRequest' ? 'CPU of ' : '';
    const label = `${what}${name} to ${other}, ${connections} connections`;
    const ratios = a.flatMap((one, round) => {
      const beside = b[round];
      return beside === undefined ? [] : [one[key] / beside[key]];
    });
    figures.push(judge(label, median(ratios), 'ratio', bound));
  };
  const speed = (name: string, other: string, connections: number, min: number) =>
    compare([name, other, connections], 'pairsPerSecond', atLeast, min);
  const ours = edgeName(COMMON, 1);
  for (const connections of [FEW, MANY]) {
    speed(ours, NOTHING, connections, 0.6);
    speed(ours, INSERT, connections, 2);
    compare([ours, INSERT, connections], 'cpuUsPerRequest', atMost, 0.6);
    speed(ours, nodeName(REDIS, COMMON), connections, 0.6);
    speed(ours, nodeName(POSTGRES, COMMON), connections, 1.2);
    speed(edgeName(25_000, 1), edgeName(100, 1), connections, 0.9);
  }
  speed(edgeName(HUGE, 4), nodeName(REDIS, HUGE), MANY, 0.6);
  speed(edgeName(HUGE, 4), nodeName(POSTGRES, HUGE), MANY, 1.2);
  speed(edgeName(HUGE, 4), nodeName(SCAN, HUGE), MANY, 3);
  speed(edgeName(HUGE, 4), edgeName(100, 4), MANY, 0.9);
  return figures;
}
