/**
 * A run: the edge under the real runtime, an agent for each cluster, clients that do whatever comes
 * to their minds, and kills. Everything that they see becomes a history.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock as clock, type Random } from '#shared/clock.ts';
import { between, SEED_MAX, seeded } from '#test/integration/seed.ts';
import { AGENT_TOKEN, CRAWLER_TOKEN, startEdge } from '#test/workerd/edge.ts';
import type { Runtime } from '#test/workerd/runtime.ts';
import { runAgent } from './agent.ts';
import { createCalls } from './calls.ts';
import { Common } from './common.ts';
import { type Connection, connect } from './connection.ts';
import { Crawler } from './crawler.ts';
import { Fleet } from './fleet.ts';
import type { History, Outage } from './history.ts';
import { Recorder } from './recorder.ts';
import { CLUSTERS, SETTINGS, VARS } from './settings.ts';

const READY_MS_MAX = 30_000;
const PROGRESS_MS = 2_000;
const LOOK_MS = 5;
/** However fast the machine: leases of a few seconds have to end, and cooldowns. */
const RUN_MS_MIN = 10_000;
/** Of the kills. */
const KILLED_AGAIN = 0.15;
/** Between a death and the next start, at most. */
const DOWN_MS_MAX = 400;

export interface RunOptions {
  /** Operations of clients that are answered. */
  readonly operations: number;
  readonly clients: number;
  /** How often the edge is killed. */
  readonly kills: number;
  readonly shards: number;
  readonly seed: number;
  /** Ends the run early; it throws the reason. */
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
  /** Another checkout, whose edge is run in place of this one's. */
  readonly root?: string | undefined;
}

/** Makes a history. Throws when the edge does not start, or ends without having been killed. */
export async function record(options: RunOptions): Promise<History> {
  await using closing = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), 'egress-ledger-'));
  closing.defer(() => rm(dir, { recursive: true, force: true }));
  const { shards, root } = options;
  let edge = await startEdge({ dir, shards, vars: VARS, root });
  closing.defer(() => edge.stop());
  const connection = connect(edge.url);
  closing.defer(() => connection.close());
  const over = new AbortController();
  closing.defer(() => over.abort());

  const run = new Run(options, connection, AbortSignal.any([over.signal, options.signal]));
  const working = run.start();
  closing.defer(async () => {
    over.abort();
    await working.catch(() => {});
  });
  const outages: Outage[] = [];
  for (const atAnswer of killPlan(options, run.random)) {
    await Promise.race([run.reaches(atAnswer), endsOf(edge), working]);
    await clock.sleep(between(run.random, 0, 20));
    const fromMs = run.recorder.nowMs;
    await edge.kill();
    const deadMs = run.recorder.nowMs;
    await clock.sleep(between(run.random, 0, DOWN_MS_MAX));
    edge = await edge.restart();
    outages.push({ fromMs, deadMs, toMs: run.recorder.nowMs });
  }
  await Promise.race([run.reachesEnd(), endsOf(edge), working]);
  over.abort();
  await working;
  options.signal.throwIfAborted();
  return {
    operations: run.recorder.settled(outages),
    outages,
    shards,
    cooldownMs: SETTINGS.cooldownSeconds * 1000,
    maxCooldownMs: SETTINGS.maxCooldownSeconds * 1000,
    slackMs: run.recorder.slackMs,
  };
}

/** Everybody who talks to the edge. */
class Run {
  readonly recorder = new Recorder();
  readonly random: Random;
  readonly #options: RunOptions;
  readonly #connection: Connection;
  readonly #signal: AbortSignal;
  #answered = 0;
  #toldMs = 0;

  constructor(options: RunOptions, connection: Connection, signal: AbortSignal) {
    this.random = seeded(options.seed);
    this.#options = options;
    this.#connection = connection;
    this.#signal = signal;
  }

  /** Resolves at the signal, when all are done; rejects when one of them fails. */
  async start(): Promise<void> {
    const [connection, recorder, signal] = [this.#connection, this.recorder, this.#signal];
    const ready: Promise<void>[] = [];
    const agents = CLUSTERS.map((cluster) => {
      const { promise, resolve: onReady } = Promise.withResolvers<void>();
      ready.push(promise);
      const random = this.#ownRandom();
      const fleet = new Fleet(cluster, random);
      const token = AGENT_TOKEN;
      return runAgent({ cluster, fleet, random, connection, recorder, token, signal, onReady });
    });
    const late = clock.sleep(READY_MS_MAX, signal).then(() => {
      throw new Error('the edge takes no sync');
    });
    late.catch(() => {});
    await Promise.race([Promise.all(ready), ...agents, late]);
    const common = new Common();
    const crawlers = Array.from({ length: this.#options.clients }, (_, index) => {
      const name = `client-${String(index + 1).padStart(2, '0')}`;
      const calls = createCalls({ connection, recorder, token: CRAWLER_TOKEN, who: name });
      const onAnswer = () => this.#onAnswer();
      const random = this.#ownRandom();
      return new Crawler({ name, calls, common, random, signal, onAnswer }).run();
    });
    await Promise.all([...agents, ...crawlers]);
  }

  /** Resolves when all were answered that are asked for, and not before the time. */
  async reachesEnd(): Promise<void> {
    await this.reaches(this.#options.operations);
    const restMs = RUN_MS_MIN - this.recorder.nowMs;
    if (restMs > 0 && !this.#signal.aborted) await clock.sleep(restMs, this.#signal);
  }

  /** Resolves when so many operations were answered, or the run is over. */
  async reaches(answered: number): Promise<void> {
    while (this.#answered < answered && !this.#signal.aborted) await clock.sleep(LOOK_MS);
    this.#options.signal.throwIfAborted();
  }

  /** Everybody chooses by numbers of their own, whatever the others do meanwhile. */
  #ownRandom(): Random {
    return seeded(Math.floor(this.random() * SEED_MAX));
  }

  #onAnswer(): void {
    this.#answered++;
    if (this.recorder.nowMs - this.#toldMs < PROGRESS_MS) return;
    this.#toldMs = this.recorder.nowMs;
    this.#options.onProgress(`${this.#answered} operations answered`);
  }
}

/**
 * After how many answers to kill: anywhere in each of as many equal parts, or again right after the
 * one before, when the edge has hardly started.
 */
function killPlan({ kills, operations }: RunOptions, random: Random): number[] {
  const part = operations / (kills + 1);
  let atAnswer = 0;
  return Array.from({ length: kills }, (_, index) => {
    const isAgain = index > 0 && random() < KILLED_AGAIN;
    if (!isAgain) atAnswer = Math.floor(part * (index + 0.5 + random()));
    return atAnswer;
  });
}

async function endsOf(edge: Runtime): Promise<never> {
  await edge.exited;
  throw new Error(`the edge ended by itself; see ${edge.logFile}`);
}
