/**
 * A minute of an API server that refuses, answers late or not at all, and breaks its watches,
 * while users go on. Then it is well again, and all has to come out right. The seed is in the name
 * of the test, and always the same, so that a red run tells of a change; `FAULTS_SEED` sets it.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock as clock, type Random } from '#shared/clock.ts';
import { settle } from '#test/crash/settle.ts';
import { sideEffectOf } from '#test/crash/side-effects.ts';
import { statusBody } from '#test/fakes/api-server.ts';
import { type AgentWorld, cannotRun, openAgentWorld } from './agent-world.ts';
import { type ApiAnswer, type ApiCall, type ApiProxy, startApiProxy } from './api-proxy.ts';
import { eventually } from './eventually.ts';
import { createFleet, type Fleet } from './fleet.ts';
import { type MachineWatch, watchMachines } from './machine-watch.ts';
import { between, pick, seeded } from './seed.ts';

const FAULTS_MS = 60_000;
const SETTLE_MS_MAX = 110_000;
const REFUSED_SHARE = 0.25;
const LOST_ANSWERS_SHARE = 0.1;
const RETRY_AFTER_MS = 2_000;
/** Of timers, on a machine that is busy. */
const TOLERANCE_MS = 50;
const CUT_MS = { min: 1_000, max: 4_000 };
const ACT_MS = { min: 200, max: 1_200 };
/** Each so many cuts the server forgets its history, too. */
const CUTS_PER_COMPACTION = 5;
const SEED_DEFAULT = 2045304524;
/** All of a fleet may be due in one second, as after a list; on the whole it is not. */
const REQUESTS_PER_SECOND_MAX = 150;
/** The users' acts alone make 20 to 27, by the seed: each takes some fifteen, and retries. */
const REQUESTS_PER_SECOND_MEAN_MAX = 35;
/**
 * The backoff begins with 100 ms, which is five tries within a second, of up to three requests for
 * one object. A loop that does not wait makes more.
 */
const SAME_PER_SECOND_MAX = 20;
const FOLLOWING_PER_SECOND_MAX = 2;

const REFUSALS: Readonly<Record<number, string>> = {
  409: 'Conflict',
  429: 'TooManyRequests',
  500: 'InternalError',
  504: 'Timeout',
};

const seed = Number(process.env['FAULTS_SEED'] ?? SEED_DEFAULT);
const title = `an agent at an API server that fails for ${FAULTS_MS / 1000} s, seed ${seed}`;

interface Told {
  readonly atMs: number;
  readonly call: ApiCall;
  readonly refusedWith: number | undefined;
}

/** The fault of one request by chance; reads never conflict. */
function refusalOf(call: ApiCall, random: Random): ApiAnswer | undefined {
  if (random() >= REFUSED_SHARE) return undefined;
  const statuses = call.method === 'GET' ? [429, 500, 504] : [409, 429, 500, 504];
  return refusal(pick(random, statuses) ?? 500);
}

function refusal(status: number): ApiAnswer {
  const headers = { 'retry-after': String(RETRY_AFTER_MS / 1000) };
  return {
    status,
    ...(status === 429 ? { headers } : {}),
    body: JSON.stringify(statusBody(status, REFUSALS[status] ?? '', 'a fault of this test')),
  };
}

/** Of one object: whoever asks the same of it again is about the same thing. */
const NAMED = /\/(?:proxies|pods|configmaps)\/[^/]+/;
const isFollowing = ({ call }: Told) => /\/(?:proxies|secrets)$/.test(call.path);

/** The largest number of requests in one second, and what was asked most often in one. */
function busiest(told: readonly Told[]): { requests: number; same: number; what: string } {
  const largest = { requests: 0, same: 0, what: '' };
  for (const second of Map.groupBy(told, ({ atMs }) => Math.floor(atMs / 1000)).values()) {
    largest.requests = Math.max(largest.requests, second.length);
    const named = second.filter(({ call }) => NAMED.test(call.path));
    const asked = Map.groupBy(named, ({ call }) => `${call.method} ${call.path}`);
    for (const [what, { length }] of asked) {
      if (length > largest.same) Object.assign(largest, { same: length, what });
    }
  }
  return largest;
}

/** Lists and watches that came sooner than the 429 before them had asked for. */
function impatient(told: readonly Told[]): string[] {
  const until = new Map<string, number>();
  return told.filter(isFollowing).flatMap(({ atMs, call: { path }, refusedWith }) => {
    const early = (until.get(path) ?? 0) - atMs;
    until.set(path, refusedWith === 429 ? atMs + RETRY_AFTER_MS : 0);
    return early > TOLERANCE_MS ? [`${path} came ${Math.round(early)} ms too soon`] : [];
  });
}

describe.skipIf(cannotRun !== undefined)(title + (cannotRun ? ` (${cannotRun})` : ''), () => {
  const random = seeded(seed);
  const closing = new AsyncDisposableStack();
  const told: Told[] = [];
  let failing = true;
  let world: AgentWorld;
  let machines: MachineWatch;
  let relay: ApiProxy;
  let fleet: Fleet;

  beforeAll(async () => {
    world = await openAgentWorld();
    closing.defer(() => world.close());
    machines = watchMachines(world.kube);
    closing.defer(() => machines.close());
    relay = await startApiProxy(world.api, {
      async before(call) {
        const answer = failing ? refusalOf(call, random) : undefined;
        told.push({ atMs: clock.monotonicMs(), call, refusedWith: answer?.status });
        if (sideEffectOf(call) === 'finalizer removed') await machines.checkRelease(call);
        return answer;
      },
      // The server did what it was asked to, and the agent does not learn of it.
      taken: () => (failing && random() < LOST_ANSWERS_SHARE ? refusal(504) : undefined),
    });
    closing.defer(() => relay.close());
    const { kube, killSquid } = world;
    fleet = createFleet({ kube, random, machines, kill: killSquid });
  }, 60_000);
  afterAll(() => closing.disposeAsync(), 60_000);

  async function breakWatches(signal: AbortSignal): Promise<void> {
    for (let cuts = 1; !signal.aborted; cuts++) {
      await clock.sleep(between(random, CUT_MS.min, CUT_MS.max));
      if (cuts % CUTS_PER_COMPACTION === 0) world.api.compact();
      relay.cutWatches();
    }
  }

  async function useProxies(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await fleet.actByChance();
      await clock.sleep(between(random, ACT_MS.min, ACT_MS.max));
    }
  }

  it('goes on for the whole time without a storm of requests', async () => {
    const agent = await world.startAgent('agent', relay);
    closing.defer(() => agent.stop(5_000));
    const over = AbortSignal.timeout(FAULTS_MS);
    await Promise.all([breakWatches(over), useProxies(over)]);
    failing = false;
    const { create, edit, delete: deleted } = fleet.done;
    expect(Math.min(create, edit, deleted)).toBeGreaterThan(3);
    expect(told.filter(({ refusedWith }) => refusedWith !== undefined).length).toBeGreaterThan(50);
    const seconds = FAULTS_MS / 1000;
    const most = busiest(told);
    expect(most.requests).toBeLessThan(REQUESTS_PER_SECOND_MAX);
    expect(most.same, most.what).toBeLessThan(SAME_PER_SECOND_MAX);
    expect(told.length / seconds).toBeLessThan(REQUESTS_PER_SECOND_MEAN_MAX);
    const following = told.filter(isFollowing).length;
    expect(following / seconds).toBeLessThan(FOLLOWING_PER_SECOND_MAX);
    expect(impatient(told)).toEqual([]);
    process.stdout.write(
      `${told.length} requests, at most ${most.requests} in a second; ` +
        `${following} lists and watches\n`,
    );
    await eventually(() => expect(relay.openWatches).toBeGreaterThanOrEqual(2), 30_000);
  }, 120_000);

  it('comes out right once the API server is well again', async () => {
    const signal = AbortSignal.timeout(SETTLE_MS_MAX);
    const parts = { world, machines, fleet, agents: ['agent'], signal, onProgress: () => {} };
    const problems = await settle(parts);
    expect(problems).toEqual([]);
    expect(machines.made).toBeGreaterThan(5);
  }, 120_000);
});
