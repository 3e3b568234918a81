import fc from 'fast-check';
import { expect, test } from 'vitest';
import { GcWorld, INSTALLATION, MINUTE_MS } from './gc-world.ts';

const SWEEPS_AT_THE_END = 60;
const never = new AbortController().signal;

/** What can happen between and during sweeps; `nth` chooses among what is there. */
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant('proxy' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('foreign' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('unmarked' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('strip' as const), nth: fc.nat(40) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cache' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wipe' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restore' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stale' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('list proxies fails' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('list machines fails' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('delete fails' as const) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), minutes: fc.nat(12) }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** A world with a second opinion: a plain count of what each sweep could rightly conclude. */
class History {
  readonly world = new GcWorld();
  /** What was wrong with deletes that should not have been. */
  readonly wrong: unknown[] = [];
  /** Sweeps in a row that could call the machine an orphan, by its id. */
  readonly sightings = new Map<string, number>();
  readonly #wiped = new Set<string>();
  #made = 0;
  #listFails = false;
  #machinesFail = false;
  #sweepDeletes = 0;
  #ownAtSweep = 0;

  constructor() {
    const { world } = this;
    world.listLive = async () => {
      if (this.#listFails) throw new Error('504');
      return [...world.listed];
    };
    const remove = world.provider.delete.bind(world.provider);
    world.provider.delete = (id, signal) => {
      try {
        this.#judge(id);
      } catch (error) {
        // Thrown from here it would pass for a failure of the backend.
        this.wrong.push(error);
      }
      return remove(id, signal);
    };
  }

  async play(event: Step): Promise<void> {
    const { world } = this;
    switch (event.do) {
      case 'proxy':
      case 'foreign':
      case 'unmarked':
        return this.#make(event.do);
      case 'strip': {
        // A finalizer taken off by hand: the server forgets the Proxy, the cache may lag.
        const uids = [...world.listed].filter((uid) => uid !== 'bystander');
        world.listed.delete(uids[event.nth % Math.max(uids.length, 1)] ?? '');
        return;
      }
      case 'cache':
        world.cached.clear();
        for (const uid of world.listed) world.cached.add(uid);
        return;
      case 'wipe':
        for (const uid of world.listed) this.#wiped.add(uid);
        world.listed.clear();
        return;
      case 'restore':
        return this.#restore();
      case 'stale':
        world.problems = ['proxies: out of touch'];
        return;
      case 'list proxies fails':
        this.#listFails = true;
        return;
      case 'list machines fails':
        this.#machinesFail = true;
        return;
      case 'delete fails':
        return world.provider.failNext('delete', 'Transient');
      case 'wait':
        return world.clock.advance(event.minutes * MINUTE_MS);
      case 'sweep':
        return this.sweep();
    }
  }

  async sweep(): Promise<void> {
    const { world } = this;
    if (this.#machinesFail) world.provider.failNext('list', 'Transient');
    const refuses = world.problems.length > 0 || this.#listFails;
    const concludes = !refuses && !this.#machinesFail && world.listed.size > 0;
    if (concludes) this.#count();
    this.#ownAtSweep = this.#own().length;
    this.#sweepDeletes = 0;
    await world.sweep();
    // A failure that was meant for this sweep is used up, asked for or not.
    if (refuses && this.#machinesFail) await world.provider.listByTag(never).catch(() => {});
    this.#machinesFail = false;
    this.#listFails = false;
    world.problems = [];
    for (const { id, goesIn } of [...world.provider.machines.values()]) {
      if (goesIn !== undefined) await world.provider.get(id, never).catch(() => {});
    }
  }

  #restore(): void {
    for (const uid of this.#wiped) this.world.listed.add(uid);
    this.#wiped.clear();
  }

  async heal(): Promise<void> {
    this.#restore();
    this.world.listed.add('bystander');
    await this.play({ do: 'cache' });
    await this.world.clock.advance(11 * MINUTE_MS);
    for (let nth = 0; nth < SWEEPS_AT_THE_END; nth++) await this.sweep();
  }

  /** Owners of the machines that exist. */
  owners(): string[] {
    return [...this.world.provider.machines.values()].map(({ name }) => name);
  }

  async #make(kind: 'proxy' | 'foreign' | 'unmarked'): Promise<void> {
    const { world } = this;
    const name = `${kind}-${this.#made++}`;
    const place = { namespace: 'crawl', proxyName: name, placement: {}, port: 3128 };
    // Who makes Proxies before the lost ones are back has given those up; nobody does it here.
    this.#restore();
    if (kind === 'proxy') world.listed.add(name);
    const uid = kind === 'unmarked' ? '' : name;
    const installation = kind === 'foreign' ? 'theirs' : INSTALLATION;
    await world.provider.create({ name, uid, installation, ...place }, never);
  }

  #own() {
    const { machines } = this.world.provider;
    return [...machines.values()].filter(
      ({ request }) => request.uid !== '' && request.installation === INSTALLATION,
    );
  }

  #count(): void {
    const { clock, listed, cached } = this.world;
    for (const { id, request, createdAtMs } of this.#own()) {
      const alive = listed.has(request.uid) || cached.has(request.uid);
      const young = clock.now() - createdAtMs < 10 * MINUTE_MS;
      this.sightings.set(id, alive || young ? 0 : (this.sightings.get(id) ?? 0) + 1);
    }
  }

  /** Whether this delete is right; a wrong one fails the property. */
  #judge(id: string): void {
    const { clock, listed, cached, provider } = this.world;
    const machine = provider.machines.get(id);
    if (machine === undefined) throw new Error(`${id} does not exist`);
    const { uid, installation } = machine.request;
    expect(installation).toBe(INSTALLATION);
    expect(uid).not.toBe('');
    expect(listed).not.toContain(uid);
    expect(cached).not.toContain(uid);
    expect(clock.now() - machine.createdAtMs).toBeGreaterThanOrEqual(10 * MINUTE_MS);
    expect(this.sightings.get(id)).toBeGreaterThanOrEqual(2);
    this.#sweepDeletes++;
    expect(this.#sweepDeletes).toBeLessThanOrEqual(Math.max(1, Math.floor(this.#ownAtSweep / 10)));
  }
}

test('only true orphans are ever deleted, and all of them are in the end', async () => {
  let deleted = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 120 }), async (events) => {
      const history = new History();
      for (const event of events) await history.play(event);
      await history.heal();
      expect(history.wrong).toEqual([]);
      deleted += history.world.told.filter((line) => line.startsWith('deleted')).length;
      const { listed } = history.world;
      const kept = (name: string) => !name.startsWith('proxy-') || listed.has(name);
      expect(history.owners().filter((name) => !kept(name))).toEqual([]);
      const owners = new Set(history.owners());
      const alive = [...listed].filter((uid) => uid !== 'bystander');
      expect(alive.filter((uid) => !owners.has(uid))).toEqual([]);
    }),
    { numRuns: 150 },
  );
  // The histories must be of the kind that has orphans at all.
  expect(deleted).toBeGreaterThan(100);
});
