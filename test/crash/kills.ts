/**
 * The agent is killed at one side effect after the other, while users go on. Whatever it leaves
 * behind, its next start has to make good: one machine for each living Proxy, none for another.
 */
import type { Child } from '#deploy/local/process/child.ts';
import { sendSignal } from '#deploy/local/process/kill.ts';
import { systemClock as clock, type Random } from '#shared/clock.ts';
import { type AgentWorld, openAgentWorld } from '#test/integration/agent-world.ts';
import { type ApiProxy, startApiProxy } from '#test/integration/api-proxy.ts';
import { type Act, createFleet, type Fleet } from '#test/integration/fleet.ts';
import type { MachineWatch } from '#test/integration/machine-watch.ts';
import { between, pick, seeded } from '#test/integration/seed.ts';
import { coverageTable, planKills, type Target, targetsOf } from './plan.ts';
import type { Report, RunOptions } from './report.ts';
import { settle } from './settle.ts';
import { type SideEffect, sideEffectOf } from './side-effects.ts';
import { openKubernetesSite } from './sites/kubernetes.ts';
import type { Site } from './sites/site.ts';

/** The side effect is called for again after this time without it. */
const CAUSE_AGAIN_MS = 3_000;
const HIT_MS_MAX = 60_000;
/** An agent that has its answer runs on for up to this long. */
const AFTER_ANSWER_MS_MAX = 4;

/** What users do to make a side effect happen soon; the site knows of those at its backend. */
const CAUSES: Readonly<Partial<Record<SideEffect, readonly Act[]>>> = {
  'finalizer set': ['create'],
  'intent annotated': ['create', 'create', 'edit'],
  'status written': ['create', 'edit', 'delete'],
  'finalizer removed': ['delete'],
};

/** Kills an agent once, at the target that is set. */
class Executioner {
  readonly #random: Random;
  #target: Target | undefined;
  #pid = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Whether the last kill that was asked for is still to come. */
  get waits(): boolean {
    return this.#target !== undefined;
  }

  aim(target: Target, child: Child): void {
    this.#target = target;
    this.#pid = child.pid;
  }

  /** Whether this is the moment; if so the agent is dead now, or is about to be. */
  strike(effect: SideEffect | undefined, moment: Target['moment']): boolean {
    if (this.#target?.effect !== effect || this.#target?.moment !== moment) return false;
    this.#target = undefined;
    const pid = this.#pid;
    if (moment !== 'answered') sendSignal(pid, 'SIGKILL');
    else {
      const runsOnMs = between(this.#random, 0, AFTER_ANSWER_MS_MAX);
      void clock.sleep(runsOnMs).then(() => sendSignal(pid, 'SIGKILL'));
    }
    return true;
  }
}

interface Parts {
  readonly site: Site;
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

/**
 * One agent, `options.kills` kills, machines where `openSite` has them. Throws when a side effect
 * does not come that has to.
 */
export async function runKills(
  options: RunOptions,
  openSite: () => Promise<Site> = openKubernetesSite,
): Promise<KillsReport> {
  const random = seeded(options.seed);
  await using closing = new AsyncDisposableStack();
  const site = await openSite();
  closing.defer(() => site.close());
  const world = await openAgentWorld({ providers: site.providers });
  closing.defer(() => world.close());
  const machines = site.watch(world.kube);
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
  site.intercept((effect, moment) => (executioner.strike(effect, moment) ? 'drop' : undefined));
  const { kube } = world;
  const kill = (machine: string) => site.kill(world, machine);
  const { specOf } = site;
  const fleet = createFleet({ kube, random, machines, kill, specOf });
  const parts = { site, world, relay, machines, fleet, executioner, random };
  const kills: Target[] = [];
  for (const target of planKills(options.kills, targetsOf(site.effects), random)) {
    await killAt(parts, target, options);
    kills.push(target);
    const { living } = fleet;
    options.onProgress(`kill ${kills.length}: ${living.size} living, ${machines.present} machines`);
    if (machines.faults.length > 0) break;
  }
  const agent = await world.startAgent('agent', relay);
  const problems = await settle({ ...parts, ...options, agents: ['agent'] });
  await agent.stop(5_000);
  const { made, dead } = machines;
  const died = dead.size;
  return { kills, table: coverageTable(kills), fleet: fleet.done, made, died, problems };
}

/** One life of an agent, from its start to the kill. */
async function killAt(parts: Parts, target: Target, options: RunOptions): Promise<void> {
  const { site, world, relay, fleet, executioner, random } = parts;
  const causes = site.causes[target.effect] ?? CAUSES[target.effect] ?? [];
  const cause = async () => {
    await fleet.act(pick(random, causes) ?? 'create');
    for (let more = between(random, 0, 1); more > 0; more--) await fleet.actByChance();
  };
  const [child] = await Promise.all([world.startAgent('agent', relay), cause()]);
  executioner.aim(target, child);
  const deadlineMs = clock.monotonicMs() + HIT_MS_MAX;
  while (!(await endsWithin(child, CAUSE_AGAIN_MS))) {
    options.signal.throwIfAborted();
    if (clock.monotonicMs() > deadlineMs) {
      throw new Error(`no "${target.effect}" within ${HIT_MS_MAX / 1000} s of a start`);
    }
    options.onProgress(`waiting for "${target.effect}"`);
    await cause();
  }
  if (!executioner.waits) return;
  const tail = world.logTail('agent').join('\n');
  throw new Error(`the agent ended by itself before "${target.effect}":\n${tail}`);
}

async function endsWithin(child: Child, ms: number): Promise<boolean> {
  const waiting = new AbortController();
  const late = clock.sleep(ms, waiting.signal).then(
    () => false,
    () => false,
  );
  const ended = await Promise.race([child.exited.then(() => true), late]);
  waiting.abort();
  return ended;
}
