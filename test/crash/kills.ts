/**
 * The agent is killed at one side effect after the other, while users go on. Whatever it leaves
 * behind, its next start has to make good: one machine for each living Proxy, none for another.
 */
import type { Child } from '#deploy/local/process/child.ts';
import { systemClock as clock, type Random } from '#shared/clock.ts';
import { type AgentWorld, openAgentWorld } from '#test/integration/agent-world.ts';
import { type ApiProxy, startApiProxy } from '#test/integration/api-proxy.ts';
import { type Act, createFleet, type Fleet } from '#test/integration/fleet.ts';
import { type MachineWatch, watchMachines } from '#test/integration/machine-watch.ts';
import { between, pick, seeded } from '#test/integration/seed.ts';
import { coverageTable, planKills, type Target } from './plan.ts';
import type { Report, RunOptions } from './report.ts';
import { settle } from './settle.ts';
import { type SideEffect, sideEffectOf } from './side-effects.ts';

/** The side effect is called for again after this time without it. */
const NUDGE_MS = 4_000;
const HIT_MS_MAX = 60_000;
/** An agent that has its answer runs on for up to this long. */
const AFTER_ANSWER_MS_MAX = 4;

/** What users do to make a side effect happen soon. */
const CAUSES: Readonly<Record<SideEffect, readonly Act[]>> = {
  'finalizer set': ['create'],
  'intent annotated': ['create', 'create', 'edit'],
  'pod created': ['create', 'create', 'edit'],
  'ConfigMap created': ['create', 'create', 'edit'],
  'status written': ['create', 'edit', 'delete'],
  'pod deleted': ['edit', 'delete', 'delete'],
  'finalizer removed': ['delete'],
};

/** Kills the agent that runs, once, at the target that is set. */
class Executioner {
  readonly #random: Random;
  #target: Target | undefined;
  #child: Child | undefined;
  #struck = Promise.withResolvers<void>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** Resolves when the kill was made. */
  aim(target: Target, child: Child): Promise<void> {
    this.#struck = Promise.withResolvers<void>();
    this.#target = target;
    this.#child = child;
    return this.#struck.promise;
  }

  /** Whether the agent died at this moment of this side effect. */
  strike(effect: SideEffect | undefined, moment: Target['moment']): boolean {
    if (effect === undefined || this.#target?.effect !== effect) return false;
    if (this.#target.moment !== moment) return false;
    const child = this.#child;
    this.#target = undefined;
    if (child === undefined) return false;
    if (moment === 'answered') {
      const delayMs = between(this.#random, 0, AFTER_ANSWER_MS_MAX);
      void clock.sleep(delayMs).then(() => this.#kill(child));
    } else this.#kill(child);
    return true;
  }

  #kill(child: Child): void {
    process.kill(child.pid, 'SIGKILL');
    this.#struck.resolve();
  }
}

interface Parts {
  readonly world: AgentWorld;
  readonly relay: ApiProxy;
  readonly machines: MachineWatch;
  readonly fleet: Fleet;
  readonly executioner: Executioner;
  readonly random: Random;
}

export interface KillsReport extends Report {
  readonly kills: readonly Target[];
}

/** One agent, `options.kills` kills. Throws when a side effect does not come that has to. */
export async function runKills(options: RunOptions): Promise<KillsReport> {
  const random = seeded(options.seed);
  await using closing = new AsyncDisposableStack();
  const world = await openAgentWorld();
  closing.defer(() => world.close());
  const machines = watchMachines(world.kube);
  closing.defer(() => machines.close());
  const executioner = new Executioner(random);
  const relay = await startApiProxy(world.api, {
    async before(call) {
      const effect = sideEffectOf(call);
      if (effect === 'finalizer removed') await machines.checkRelease(call);
      return executioner.strike(effect, 'sent') ? 'drop' : undefined;
    },
    taken: (call) => (executioner.strike(sideEffectOf(call), 'taken') ? 'drop' : undefined),
    answered: (call) => void executioner.strike(sideEffectOf(call), 'answered'),
  });
  closing.defer(() => relay.close());
  const { killSquid, kube } = world;
  const fleet = createFleet({ kube, random, machines, killSquid });
  const parts = { world, relay, machines, fleet, executioner, random };
  const kills: Target[] = [];
  for (const target of planKills(options.kills, random)) {
    await killAt(parts, target, options.signal);
    kills.push(target);
    const { living } = fleet;
    options.onProgress(`kill ${kills.length}: ${living.size} living, ${machines.present} machines`);
    if (machines.faults.length > 0) break;
  }
  const agent = await world.startAgent('agent', relay);
  const problems = await settle({ world, machines, fleet, agents: ['agent'] });
  await agent.stop(5_000);
  const { made, dead } = machines;
  const died = dead.size;
  return { kills, table: coverageTable(kills), fleet: fleet.done, made, died, problems };
}

/** One life of an agent, from its start to the kill. */
async function killAt(parts: Parts, target: Target, signal: AbortSignal): Promise<void> {
  const { world, relay, fleet, executioner, random } = parts;
  const nudge = async () => {
    await fleet.act(pick(random, CAUSES[target.effect]) ?? 'create');
    for (let more = between(random, 0, 1); more > 0; more--) await fleet.actByChance();
  };
  const [child] = await Promise.all([world.startAgent('agent', relay), nudge()]);
  const struck = executioner.aim(target, child);
  const deadlineMs = clock.monotonicMs() + HIT_MS_MAX;
  const ended = child.exited.then(({ exitCode }) => exitCode);
  while (!(await within(struck, NUDGE_MS, ended))) {
    signal.throwIfAborted();
    if (clock.monotonicMs() > deadlineMs) {
      throw new Error(`no "${target.effect}" within ${HIT_MS_MAX / 1000} s of a start`);
    }
    await nudge();
  }
  await child.exited;
}

/** Whether the kill comes within `ms`; throws when the agent ends by itself. */
async function within(struck: Promise<void>, ms: number, ended: Promise<number>): Promise<boolean> {
  const waiting = new AbortController();
  const hit = struck.then(() => true);
  const late = clock.sleep(ms, waiting.signal).then(
    () => false,
    () => false,
  );
  const own = ended.then(async (exitCode) => {
    // The kill itself ends the process, too, and is known before it.
    if (await Promise.race([hit, Promise.resolve(false)])) return true;
    throw new Error(`the agent ended by itself with exit code ${exitCode}`);
  });
  own.catch(() => {});
  const result = await Promise.race([hit, late, own]);
  waiting.abort();
  return result;
}
