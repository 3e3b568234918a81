/** Random histories of a book beside the slow model. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ReportResult } from '#shared/wire/lease.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { entry, Ledger } from './harness.ts';
import { Model } from './model.ts';

const RUNS = 500;
const NAMES = ['a', 'b', 'c', 'd'];
const TARGETS = [undefined, 't', 'u'];
const SECONDS = [1, 14, 30, 89, 90, 299, 300, 700];

const entries: fc.Arbitrary<InventoryEntry> = fc
  .record({
    name: fc.constantFrom(...NAMES),
    instance: fc.constantFrom('1', '1', '1', '2'),
    maxLeases: fc.integer({ min: 1, max: 3 }),
    healthy: fc.constantFrom(true, true, true, true, false, null),
    egressIP: fc.constantFrom(undefined, undefined, '192.0.2.1', '192.0.2.2'),
    leasable: fc.constantFrom(true, true, true, false),
    draining: fc.constantFrom(false, false, false, true),
  })
  .map(({ name, egressIP, ...rest }) =>
    entry(name, { ...rest, ...(egressIP === undefined ? {} : { egressIP }) }),
  );

/** Picks one of the leases granted so far, by its place. */
const place = fc.nat(30);

const commands = fc.oneof(
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('full' as const),
      entries: fc.array(entries, { maxLength: 5 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('upsert' as const), entry: entries }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('remove' as const), name: fc.constantFrom(...NAMES) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('heartbeat' as const) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('acquire' as const),
      target: fc.constantFrom(...TARGETS),
      ttlSeconds: fc.constantFrom(1, 60, 300, 3600),
      strategy: fc.constantFrom('least-loaded' as const, 'spread' as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), place }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('renew' as const),
      place,
      ttlSeconds: fc.constantFrom(1, 300, 3600),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('report' as const),
      place,
      result: fc.constantFrom<ReportResult>('ok', 'ok', 'rate_limited', 'banned'),
      target: fc.constantFrom(...TARGETS),
      retryAfterSeconds: fc.constantFrom(undefined, 1, 700),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      seconds: fc.constantFrom(...SECONDS),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);

type Command = typeof commands extends fc.Arbitrary<infer T> ? T : never;

class Run {
  readonly ledger = new Ledger();
  readonly model = new Model();
  readonly seen = { granted: 0, refused: 0, restarts: 0 };
  readonly #ids: string[] = [];
  #lastToken = 0;
  /** `seq` of the last change that the ledger took; undefined before the first full sync. */
  #basis: number | undefined;
  #session = 0;

  step(command: Command): void {
    this.#do(command);
    this.#check();
  }

  #do(command: Command): void {
    const { ledger, model } = this;
    switch (command.do) {
      case 'full':
        this.#full(command.entries);
        return;
      case 'upsert':
        if (this.#delta({ upserts: [command.entry] })) model.put(command.entry, ledger.nowMs);
        return;
      case 'remove': {
        const uid = `uid-${command.name}`;
        if (this.#delta({ removes: [uid] })) model.remove(uid, ledger.nowMs);
        return;
      }
      case 'heartbeat':
        this.#heartbeat();
        return;
      case 'acquire':
        this.#acquire(command);
        return;
      case 'release': {
        const id = this.#id(command.place);
        ledger.release(id);
        model.leases.delete(id);
        return;
      }
      case 'renew':
        this.#renew(this.#id(command.place), command.ttlSeconds);
        return;
      case 'report':
        this.#report(command);
        return;
      case 'advance':
        ledger.advance(command.seconds);
        return;
      case 'sweep':
        ledger.sweep();
        return;
      case 'restart':
        this.#restart();
        return;
    }
  }

  #id(at: number): string {
    return this.#ids[at % Math.max(1, this.#ids.length)] ?? 'never-granted';
  }

  #full(list: readonly InventoryEntry[]): void {
    const { ledger, model } = this;
    const upserts = [...new Map(list.map((one) => [one.uid, one])).values()];
    const session = `session-${++this.#session}`;
    expect(ledger.sync('c', { kind: 'full', session, seq: 1, upserts })).toMatchObject({
      ok: true,
    });
    for (const uid of model.proxies.keys()) {
      if (!upserts.some((one) => one.uid === uid)) model.remove(uid, ledger.nowMs);
    }
    for (const one of upserts) model.put(one, ledger.nowMs);
    model.lastSyncMs = ledger.nowMs;
    this.#basis = 1;
  }

  #delta(changes: { upserts?: InventoryEntry[]; removes?: string[] }): boolean {
    const seq = this.#goOn({ kind: 'delta', ...changes });
    if (seq !== undefined) this.#basis = seq;
    return seq !== undefined;
  }

  #heartbeat(): void {
    this.#goOn({ kind: 'heartbeat' });
  }

  /** What a session sends after its full sync is always taken, whatever a restart forgot. */
  #goOn(request: Parameters<Ledger['sync']>[1]): number | undefined {
    const { ledger, model } = this;
    const basis = this.#basis;
    const session = `session-${this.#session}`;
    const result = ledger.sync('c', {
      session,
      ...(basis === undefined ? {} : { basis }),
      ...request,
    });
    expect(result.ok).toBe(basis !== undefined);
    if (!result.ok) return undefined;
    model.lastSyncMs = ledger.nowMs;
    return result.response.acceptedSeq;
  }

  #acquire(command: Extract<Command, { do: 'acquire' }>): void {
    const { ledger, model } = this;
    const { target, ttlSeconds, strategy } = command;
    const eligible = this.#eligible(target);
    const wish = { ttlSeconds, strategy, ...(target === undefined ? {} : { target }) };
    const result = ledger.acquire(wish);
    this.seen[result.ok ? 'granted' : 'refused']++;
    if (!result.ok) {
      expect(eligible).toEqual([]);
      expect(result.code).toBe('no_match');
      if (result.code !== 'no_match') return;
      const { considered, atCapacity, inCooldown, unhealthy } = result.noMatch;
      expect(atCapacity + inCooldown + unhealthy).toBe(considered);
      expect(considered + result.withheld).toBe(model.proxies.size);
      return;
    }
    const { leaseID, token, proxy } = result.lease;
    expect(eligible).toContain(`uid-${proxy.name}`);
    expect(token).toBeGreaterThan(this.#lastToken);
    this.#lastToken = token;
    this.#ids.push(leaseID);
    model.grant(leaseID, `uid-${proxy.name}`, target, ttlSeconds * 1000, ledger.nowMs);
  }

  #eligible(target: string | undefined): string[] {
    const { model, ledger } = this;
    return [...model.proxies.keys()].filter((uid) => model.isEligible(uid, target, ledger.nowMs));
  }

  #renew(id: string, ttlSeconds: number): void {
    const { ledger, model } = this;
    const state = model.stateOf(id, ledger.nowMs);
    const result = ledger.renew(id, ttlSeconds);
    expect(result.ok ? 'live' : result.code).toBe(state);
    const lease = model.leases.get(id);
    if (result.ok && lease !== undefined) lease.expiresMs = ledger.nowMs + ttlSeconds * 1000;
  }

  #report(command: Extract<Command, { do: 'report' }>): void {
    const { ledger, model } = this;
    const { result, target, retryAfterSeconds } = command;
    const id = this.#id(command.place);
    const isKnown = model.stateOf(id, ledger.nowMs) !== 'unknown_lease';
    const report = {
      result,
      ...(target === undefined ? {} : { target }),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    };
    expect(ledger.report(id, report).ok).toBe(isKnown);
    const lengthMs =
      result === 'rate_limited' && retryAfterSeconds !== undefined
        ? retryAfterSeconds * 1000
        : undefined;
    model.report(id, result, target, lengthMs, ledger.nowMs);
  }

  /** The book from storage answers as the one that is lost, but for a bounded age of the sync. */
  #restart(): void {
    const { ledger, model } = this;
    this.seen.restarts++;
    const before = this.#answers();
    const [agent] = ledger.store.snapshot().agents;
    if (agent !== undefined) {
      expect(model.lastSyncMs - agent.lastSyncMs).toBeLessThan(ledger.rules.agentStaleMs / 3);
      expect(model.lastSyncMs).toBeGreaterThanOrEqual(agent.lastSyncMs);
    }
    const isExact = agent === undefined || agent.lastSyncMs === model.lastSyncMs;
    const wishes = TARGETS.map((target) => (target === undefined ? {} : { target }));
    const ask = () => {
      const [wish = {}, ...others] = wishes;
      const results = [wish, ...others].map((one) =>
        ledger.book.acquire(one, `probe-${one.target}`, ledger.nowMs),
      );
      return results.map(({ result }) => (result.ok ? result.lease.proxy : result));
    };
    const chosen = ask();
    ledger.restart();
    expect(this.#answers()).toEqual(before);
    const chosenAgain = ask();
    if (isExact) expect(chosenAgain).toEqual(chosen);
    ledger.restart();
    model.lastSyncMs = agent?.lastSyncMs ?? model.lastSyncMs;
  }

  #answers() {
    const { ledger } = this;
    const proxies = ledger.list().proxies.map(({ healthy: _, ...rest }) => rest);
    const { leases, cooldowns } = ledger.book.stats(ledger.nowMs);
    return { proxies, leases, cooldowns, each: this.#ids.map((id) => ledger.get(id)) };
  }

  #check(): void {
    const { ledger, model } = this;
    for (const id of this.#ids) {
      const result = ledger.get(id);
      expect(result.ok ? 'live' : result.code).toBe(model.stateOf(id, ledger.nowMs));
      if (!result.ok) continue;
      expect(result.lease.expiresInMs).toBe((model.leases.get(id)?.expiresMs ?? 0) - ledger.nowMs);
    }
    const { proxies } = ledger.list();
    expect(proxies).toHaveLength(model.proxies.size);
    for (const { name, activeLeases } of proxies) {
      expect(activeLeases).toBe(model.active(`uid-${name}`, ledger.nowMs));
    }
  }
}

describe('the book', () => {
  it('never exceeds, offers, loses or forgets what it must not, over any history', () => {
    const seen = { granted: 0, refused: 0, restarts: 0 };
    fc.assert(
      fc.property(fc.array(commands, { minLength: 10, maxLength: 60 }), (history) => {
        const run = new Run();
        run.step({ do: 'full', entries: NAMES.map((name) => entry(name)) });
        for (const command of history) run.step(command);
        seen.granted += run.seen.granted;
        seen.refused += run.seen.refused;
        seen.restarts += run.seen.restarts;
      }),
      { numRuns: RUNS },
    );
    // The histories must really go through all of it.
    expect(seen.granted).toBeGreaterThan(RUNS);
    expect(seen.refused).toBeGreaterThan(RUNS / 2);
    expect(seen.restarts).toBeGreaterThan(RUNS / 2);
  }, 120_000);
});
