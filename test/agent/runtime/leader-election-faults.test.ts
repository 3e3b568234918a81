import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Leadership, LeadershipLostError } from '#agent/runtime/leadership.ts';
import type { Clock, Random } from '#shared/clock.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import {
  type Elector,
  FINE,
  LeaseServer,
  type Network,
  startElector,
  TIMING,
} from './election-world.ts';

/** Hardly any room between the end of one leader and the begin of the next. */
const TIGHT = { ...TIMING, leaseDurationMs: TIMING.renewDeadlineMs + 1_000 };

const ELECTORS = 3;
/** Each look at who leads comes so long after the last. */
const STEP_MS = 100;
const RESTART_MS = 1_000;
/** Wall clocks that disagree by hours. */
const SKEWS_MS = [0, 7_200_000, -7_200_000];

const FAULTS = ['freeze', 'kill', 'stop', 'away', 'silent', 'lossy', 'slow'] as const;

const fault = fc.record({
  kind: fc.constantFrom(...FAULTS),
  who: fc.nat({ max: ELECTORS - 1 }),
  /** Aims at whoever leads instead of `who`. */
  leader: fc.boolean(),
  forMs: fc.nat({ max: 40_000 }),
  thenMs: fc.nat({ max: 15_000 }),
});
type Fault = typeof fault extends fc.Arbitrary<infer T> ? T : never;

/** A small generator (mulberry32): one number of a failing run brings all of it back. */
function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

class Scenario {
  readonly world = new FakeClock();
  readonly server = new LeaseServer(this.world);
  /** In the order in which processes began to lead. */
  readonly terms: number[] = [];
  readonly failures: unknown[] = [];
  readonly #random: Random;
  readonly #electors: Elector[] = [];
  #started = 0;
  /** Until when each fault of the network lasts. */
  readonly #until = new Map<Fault['kind'], number>();

  constructor(seed: number) {
    this.#random = seeded(seed);
    this.server.network = this.#network();
    for (let slot = 0; slot < ELECTORS; slot++) this.#start(slot);
  }

  get leaders(): Elector[] {
    return this.#electors.filter(({ leads }) => leads);
  }

  apply({ kind, who, leader, forMs }: Fault): void {
    const [leading] = leader ? this.leaders : [];
    const elector = leading ?? this.#electors[who];
    if (elector === undefined) return;
    switch (kind) {
      case 'freeze':
        elector.clock.freeze();
        this.world.setTimer(() => elector.clock.thaw(this.#random() < 0.5), forMs);
        return;
      case 'kill':
        // What it believes does not matter any more: nothing in it will ever run again.
        elector.clock.kill();
        this.#restartLater(this.#electors.indexOf(elector));
        return;
      case 'stop':
        elector.clock.setTimer(elector.stop, 0);
        return;
      default:
        this.#until.set(kind, this.world.monotonicMs() + forMs);
    }
  }

  heal(): void {
    this.#until.clear();
    this.server.network = FINE;
    for (const { clock } of this.#electors) clock.thaw();
  }

  /** Moves on, and looks again and again whether two would act. */
  async run(ms: number): Promise<void> {
    for (let passedMs = 0; passedMs < ms; passedMs += STEP_MS) {
      await this.world.advance(STEP_MS);
      this.check();
    }
  }

  check(): void {
    expect(this.leaders.length).toBeLessThanOrEqual(1);
  }

  #start(slot: number): void {
    const elector = startElector({
      world: this.world,
      server: this.server,
      identity: `${slot}-${this.#started++}`,
      skewMs: SKEWS_MS[slot] ?? 0,
      random: this.#random,
      timing: TIGHT,
      lead: (leadership, clock) => this.#lead(leadership, clock),
    });
    this.#electors[slot] = elector;
    elector.result
      .catch((error) => {
        if (!(error instanceof LeadershipLostError)) this.failures.push(error);
      })
      .finally(() => this.#restartLater(slot));
  }

  #restartLater(slot: number): void {
    if (slot < 0) return;
    const ended = this.#electors[slot];
    this.world.setTimer(() => {
      if (this.#electors[slot] === ended) this.#start(slot);
    }, RESTART_MS);
  }

  async #lead(leadership: Leadership, clock: Clock): Promise<void> {
    this.terms.push(leadership.term);
    this.check();
    await clock.sleep(2 ** 31, leadership.signal).catch(() => {});
    // Work takes a while to end.
    await clock.sleep(this.#random() * 3_000);
  }

  #network(): Network {
    const lasts = (kind: Fault['kind']) => (this.#until.get(kind) ?? 0) > this.world.monotonicMs();
    return {
      latencyMs: () => this.#random() * (lasts('slow') ? 8_000 : 50),
      losesAnswer: () => lasts('lossy') && this.#random() < 0.5,
      server: () => (lasts('silent') ? 'silent' : lasts('away') ? 'refusing' : 'up'),
    };
  }
}

test('at most one acts, terms grow, and one leads again after any run of faults', async () => {
  let elections = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.integer(),
      fc.array(fault, { minLength: 1, maxLength: 20 }),
      async (seed, faults) => {
        const scenario = new Scenario(seed);
        await scenario.run(1_000);
        for (const each of faults) {
          scenario.apply(each);
          await scenario.run(each.thenMs);
        }
        scenario.heal();
        // What is under way may fail first; then the rest of a lease and the longest pause.
        await scenario.run(TIGHT.leaseDurationMs * 2 + TIGHT.retryPeriodMs * 2.2 + 10_000);
        expect(scenario.failures).toEqual([]);
        expect(scenario.leaders).toHaveLength(1);
        const { terms } = scenario;
        expect(terms).toEqual([...new Set(terms)].sort((a, b) => a - b));
        elections += terms.length;
      },
    ),
    { numRuns: 150 },
  );
  // The faults were such that leadership really moved.
  expect(elections).toBeGreaterThan(300);
}, 120_000);
