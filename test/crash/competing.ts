/**
 * Two agents of which one leads. The leader is killed in the middle of a side effect, or frozen
 * past its lease, with a request on its way or not, and wakes up as one of two. Whatever either
 * believes, there is one machine for each living Proxy.
 */
import { stringAt } from '#deploy/local/control-plane/api/object-meta.ts';
import { objectOf, objects } from '#deploy/local/control-plane/json.ts';
import type { KubeClient } from '#deploy/local/kube/client.ts';
import { systemClock as clock, type Random } from '#shared/clock.ts';
import { type AgentWorld, openAgentWorld } from '#test/integration/agent-world.ts';
import { createFleet, type Fleet } from '#test/integration/fleet.ts';
import { type MachineWatch, watchMachines } from '#test/integration/machine-watch.ts';
import { between, pick, seeded } from '#test/integration/seed.ts';
import { MOMENTS } from './plan.ts';
import type { Report, RunOptions } from './report.ts';
import { type Rival, startRival } from './rival.ts';
import { settle } from './settle.ts';
import type { SideEffect } from './side-effects.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/crawl-system/leases';
/** Several times the lease: whoever wants to lead has done so. */
const LEADER_MS_MAX = 30_000;
const POLL_MS = 50;
/** A leader without anything to do gives no chance to catch it. */
const NUDGE_MS = 1_500;
const CAUGHT_MS_MAX = 20_000;

const DISTURBANCES = ['killed', 'frozen', 'frozen with a request on its way'] as const;
type Disturbance = (typeof DISTURBANCES)[number];

/** Side effects at the provider: no leader may leave them to chance. */
const FENCED: readonly SideEffect[] = ['pod created', 'pod deleted'];

interface Parts {
  readonly world: AgentWorld;
  readonly machines: MachineWatch;
  readonly fleet: Fleet;
  readonly random: Random;
  readonly rivals: readonly Rival[];
  readonly signal: AbortSignal;
}

export interface CompetingReport extends Report {
  readonly disturbances: Readonly<Record<Disturbance, number>>;
}

/** Throws when something does not happen that has to, such as an election. */
export async function runCompeting(options: RunOptions): Promise<CompetingReport> {
  const random = seeded(options.seed);
  await using closing = new AsyncDisposableStack();
  const world = await openAgentWorld();
  closing.defer(() => world.close());
  const machines = watchMachines(world.kube);
  closing.defer(() => machines.close());
  const unled: { rival: string; effect: SideEffect }[] = [];
  const rivals: Rival[] = [];
  for (const name of ['agent-a', 'agent-b']) {
    const rival = await startRival(world, name, async (sender, effect, call) => {
      if (effect === 'finalizer removed') await machines.checkRelease(call);
      const leader = await leaderOf(world.kube, rivals);
      if (leader !== undefined && leader.name !== sender) unled.push({ rival: sender, effect });
    });
    rivals.push(rival);
    closing.defer(() => rival.close());
  }
  const { kube, killSquid } = world;
  const fleet = createFleet({ kube, random, machines, kill: killSquid });
  const parts = { world, machines, fleet, random, rivals, signal: options.signal };
  const disturbances = { killed: 0, frozen: 0, 'frozen with a request on its way': 0 };
  for (let count = 1; count <= options.kills && machines.faults.length === 0; count++) {
    const kind = DISTURBANCES[count % DISTURBANCES.length] ?? 'killed';
    await disturb(parts, kind);
    disturbances[kind]++;
    options.onProgress(
      `${count} disturbances: ${fleet.living.size} living, ${machines.present} machines`,
    );
  }
  const agents = rivals.map(({ name }) => name);
  const problems = await settle({ ...parts, ...options, agents });
  problems.push(...electionFaults(parts, unled));
  const counts = Object.entries(disturbances).map(([kind, times]) => `${kind}: ${times}`);
  const told = [...counts, ...tellOf(parts, unled)];
  return {
    disturbances,
    table: told.join('\n'),
    fleet: fleet.done,
    made: machines.made,
    died: machines.dead.size,
    problems,
  };
}

async function disturb(parts: Parts, kind: Disturbance): Promise<void> {
  const { fleet, random } = parts;
  const leader = await whenLed(parts, () => true);
  for (let acts = between(random, 1, 3); acts > 0; acts--) await fleet.actByChance();
  switch (kind) {
    case 'killed':
      return killLeader(parts, leader);
    case 'frozen':
      await clock.sleep(between(random, 0, 1_000));
      leader.freeze();
      await whenLed(parts, (next) => next !== leader);
      await clock.sleep(between(random, 0, 1_000));
      return leader.thaw();
    case 'frozen with a request on its way':
      return freezeInFlight(parts, leader);
  }
}

/** In the middle of whatever it does next; it is back at once, or when another one leads. */
async function killLeader(parts: Parts, leader: Rival): Promise<void> {
  const { random } = parts;
  const moment = pick(random, MOMENTS) ?? 'taken';
  const caught = Promise.withResolvers<void>();
  leader.snare = (_effect, at) => {
    if (at !== moment) return undefined;
    leader.snare = undefined;
    leader.kill(random() < 0.5 ? 0 : 4_000);
    caught.resolve();
    return 'drop';
  };
  await whenCaught(parts, caught.promise);
}

/** The request reaches the server, or does not, when another one has led for a while. */
async function freezeInFlight(parts: Parts, leader: Rival): Promise<void> {
  const { random } = parts;
  const caught = Promise.withResolvers<void>();
  const released = Promise.withResolvers<'drop' | undefined>();
  leader.snare = (_effect, moment) => {
    if (moment !== 'sent') return undefined;
    leader.snare = undefined;
    leader.freeze();
    caught.resolve();
    return released.promise;
  };
  try {
    await whenCaught(parts, caught.promise);
    await whenLed(parts, (next) => next !== leader);
    await clock.sleep(between(random, 0, 2_000));
    // First the request and then the process, or both at once: either may come first.
    const wakesFirst = random() < 0.5;
    if (wakesFirst) leader.thaw();
    released.resolve(random() < 0.75 ? undefined : 'drop');
    if (!wakesFirst) await clock.sleep(between(random, 0, 500));
  } finally {
    released.resolve('drop');
    leader.thaw();
  }
}

async function whenCaught(parts: Parts, caught: Promise<void>): Promise<void> {
  const deadlineMs = clock.monotonicMs() + CAUGHT_MS_MAX;
  let isCaught = false;
  void caught.then(() => {
    isCaught = true;
  });
  while (!isCaught) {
    parts.signal.throwIfAborted();
    if (clock.monotonicMs() > deadlineMs) throw stuck(parts, 'the leader changes nothing');
    await parts.fleet.actByChance();
    await Promise.race([caught, clock.sleep(NUDGE_MS)]);
  }
}

/** Waits until one leads that is wanted. */
async function whenLed(parts: Parts, wanted: (leader: Rival) => boolean): Promise<Rival> {
  const deadlineMs = clock.monotonicMs() + LEADER_MS_MAX;
  while (clock.monotonicMs() < deadlineMs) {
    parts.signal.throwIfAborted();
    const leader = await leaderOf(parts.world.kube, parts.rivals);
    if (leader?.child !== undefined && wanted(leader)) return leader;
    await clock.sleep(POLL_MS);
  }
  throw stuck(parts, 'nobody took the Lease who could');
}

function stuck({ world, rivals }: Parts, what: string): Error {
  const tails = rivals.flatMap(({ name }) => world.logTail(name));
  return new Error([`${what}, after ${LEADER_MS_MAX / 1000} s:`, ...tails].join('\n'));
}

/** Whoever holds a Lease that has not run out; at the server, whatever anybody believes. */
async function leaderOf(kube: KubeClient, rivals: readonly Rival[]): Promise<Rival | undefined> {
  for (const lease of objects((await kube.request({ path: LEASES }))['items'])) {
    const spec = objectOf(lease['spec']);
    const seconds = Number(spec['leaseDurationSeconds'] ?? 0);
    const endsMs = Date.parse(stringAt(spec, 'renewTime')) + seconds * 1000;
    if (!(endsMs > clock.now())) continue;
    const holder = stringAt(spec, 'holderIdentity');
    const leader = rivals.find(({ name }) => holder.includes(name));
    if (leader !== undefined) return leader;
  }
  return undefined;
}

type Unled = readonly { readonly rival: string; readonly effect: SideEffect }[];

function electionFaults({ world, rivals }: Parts, unled: Unled): string[] {
  const shared = [...world.edge.sharedTerms].map((term) => `two agents spoke in term ${term}`);
  const acted = unled
    .filter(({ effect }) => FENCED.includes(effect))
    .map(({ rival, effect }) => `${rival} was not the leader any more: ${effect}`);
  const refused = rivals
    .filter(({ ownEnds }) => ownEnds.has(2))
    .map(({ name }) => `${name} refuses its flags: ${world.logTail(name).join(' ')}`);
  return [...shared, ...acted, ...refused];
}

function tellOf({ world, rivals }: Parts, unled: Unled): string[] {
  const ends = rivals.map(({ name, ownEnds }) => {
    const codes = [...ownEnds].map(([code, times]) => `${times} with exit code ${code}`);
    return `${name} ended by itself: ${codes.join(', ') || 'never'}`;
  });
  return [
    ...ends,
    `side effects sent while another one led: ${unled.map(({ effect }) => effect).join(', ') || 0}`,
    `syncs that the edge refused as stale: ${world.edge.stale}`,
  ];
}
