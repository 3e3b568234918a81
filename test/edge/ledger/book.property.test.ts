/** Random histories of a book beside the slow model. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { AcquireResult } from '#edge/ledger/results.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { type Command, type CommandOf, commands, NAMES, TARGETS } from './commands.ts';
import { entry, Ledger } from './harness.ts';
import { type Ask, Model, type Verdict } from './model.ts';

const RUNS = 700;
/** Leases that each client may hold. */
const LEASES_MAX: Readonly<Record<string, number>> = { many: 99, few: 2 };

class Run {
  readonly ledger = new Ledger();
  readonly model = new Model();
  readonly seen = { granted: 0, refused: 0, restarts: 0, repeated: 0, served: 0, overdue: 0 };
  readonly #ids: string[] = [];
  #asked = 0;
  #lastToken = 0;
  /** `seq` of the last change that the ledger took; undefined before the first full sync. */
  #basis: number | undefined;
  #session = 0;

  step(command: Command): void {
    this.#do(command);
    this.#serve();
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
        this.#leave(id);
        return;
      }
      case 'renew':
        this.#renew(this.#id(command.place), command.ttlSeconds);
        return;
      case 'report':
        this.#report(command);
        return;
      case 'advance':
        this.#advance(command.seconds);
        return;
      case 'sweep':
        ledger.sweep();
        return;
      case 'restart':
        this.#restart(command.keepsQueue);
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

  #acquire({ do: _, key, client, ...wish }: CommandOf<'acquire'>): void {
    const { ledger, model } = this;
    const given = Object.entries(wish).filter(([, value]) => value !== undefined);
    // The same key mostly comes with the same request.
    const request = key === 'k1' ? { waitSeconds: 30 } : Object.fromEntries(given);
    const { waitSeconds: __, ...asked } = request;
    const body = JSON.stringify(asked);
    const id = `lease-${++this.#asked}`;
    this.#ids.push(id);
    const leasesMax = LEASES_MAX[client] ?? 0;
    const ask: Ask = { id, request, client, leasesMax, key, body };
    const verdict = model.ask(ask, ledger.nowMs);
    const idempotency = key === undefined ? undefined : { key, body };
    const result = ledger.ask(request, {
      leaseID: id,
      client: { name: client, leasesMax },
      idempotency,
    });
    this.#compare(ask, verdict, result);
  }

  #compare(ask: Ask, verdict: Verdict, result: AcquireResult | undefined): void {
    const { ledger, seen } = this;
    switch (verdict.is) {
      case 'waits':
        expect(result).toBeUndefined();
        return;
      case 'granted':
        this.#granted(ask, ask.id, verdict.uids, result);
        seen.granted++;
        return;
      case 'repeated':
        expect(result).toEqual(ledger.get(verdict.id));
        seen.repeated++;
        return;
      case 'no_match': {
        const { noMatch, withheld } = verdict;
        expect(result).toEqual({ ok: false, code: 'no_match', noMatch, withheld });
        seen.refused++;
        return;
      }
      default:
        expect(result).toMatchObject({ ok: false, code: verdict.is });
    }
  }

  #granted(ask: Ask, id: string, uids: readonly string[], result?: AcquireResult): void {
    const { ledger, model } = this;
    if (result?.ok !== true) throw new Error(`not granted: ${JSON.stringify(result)}`);
    const { leaseID, token, proxy, ttlSeconds } = result.lease;
    expect(leaseID).toBe(id);
    expect(uids).toContain(`uid-${proxy.name}`);
    expect(token).toBeGreaterThan(this.#lastToken);
    this.#lastToken = token;
    model.grant(ask, id, `uid-${proxy.name}`, ttlSeconds * 1000, ledger.nowMs);
  }

  /** Those who wait have been answered exactly as the model says. */
  #serve(): void {
    const { ledger, model } = this;
    for (;;) {
      const next = model.next(ledger.nowMs);
      if (next === undefined) break;
      const { waiter, uids } = next;
      model.waiting = model.waiting.filter((one) => one !== waiter);
      const [last = ''] = waiter.ids.slice(-1);
      this.#granted(waiter, last, uids, ledger.answers.get(last));
      for (const id of waiter.ids) {
        expect(ledger.answers.get(id)).toEqual(ledger.answers.get(last));
        ledger.answers.delete(id);
      }
      this.seen.served++;
    }
    for (const waiter of model.waiting.filter((one) => one.deadlineMs <= ledger.nowMs)) {
      model.waiting = model.waiting.filter((one) => one !== waiter);
      const refusal = model.refusal(waiter.request, ledger.nowMs);
      for (const id of waiter.ids) {
        expect(ledger.answers.get(id)).toEqual({ ok: false, code: 'no_match', ...refusal });
        ledger.answers.delete(id);
      }
      this.seen.overdue++;
    }
    expect([...ledger.answers]).toEqual([]);
  }

  #leave(id: string): void {
    const { ledger, model } = this;
    const waiter = model.waiting.find((one) => one.ids.includes(id));
    if (waiter === undefined) return;
    waiter.ids.splice(waiter.ids.indexOf(id), 1);
    if (waiter.ids.length === 0) model.waiting = model.waiting.filter((one) => one !== waiter);
    expect(ledger.answers.get(id)).toEqual({ ok: false, code: 'cancelled' });
    ledger.answers.delete(id);
  }

  /** The object ticks at each time that the book names. */
  #advance(seconds: number): void {
    const { ledger } = this;
    const untilMs = ledger.nowMs + seconds * 1000;
    for (;;) {
      const tickMs = ledger.book.nextTickMs;
      if (tickMs === undefined || tickMs > untilMs) break;
      ledger.nowMs = Math.max(ledger.nowMs, tickMs);
      ledger.tick();
      this.#serve();
    }
    ledger.nowMs = untilMs;
  }

  #renew(id: string, ttlSeconds: number): void {
    const { ledger, model } = this;
    const state = model.stateOf(id, ledger.nowMs);
    const result = ledger.renew(id, ttlSeconds);
    expect(result.ok ? 'live' : result.code).toBe(state);
    const lease = model.leases.get(id);
    if (result.ok && lease !== undefined) lease.expiresMs = ledger.nowMs + ttlSeconds * 1000;
  }

  #report(command: CommandOf<'report'>): void {
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
  #restart(keepsQueue: boolean): void {
    const { ledger, model } = this;
    this.seen.restarts++;
    if (model.waiting.length === 0) this.#compareWithStorage();
    if (keepsQueue) ledger.rebuild();
    else {
      ledger.restart();
      model.waiting = [];
    }
    for (const lease of model.leases.values()) lease.reported.clear();
    model.lastSyncMs = ledger.store.snapshot().agents[0]?.lastSyncMs ?? model.lastSyncMs;
    ledger.tick();
    this.#serve();
  }

  #compareWithStorage(): void {
    const { ledger, model } = this;
    const before = this.#answers();
    const [agent] = ledger.store.snapshot().agents;
    if (agent !== undefined) {
      expect(model.lastSyncMs - agent.lastSyncMs).toBeLessThan(ledger.rules.agentStaleMs / 3);
      expect(model.lastSyncMs).toBeGreaterThanOrEqual(agent.lastSyncMs);
    }
    const isExact = agent === undefined || agent.lastSyncMs === model.lastSyncMs;
    const wishes = TARGETS.map((target) => (target === undefined ? {} : { target }));
    const ask = () =>
      wishes.map((wish) => {
        const result = ledger.look(wish);
        return result.ok ? result.lease.proxy : result;
      });
    const chosen = ask();
    ledger.restart();
    expect(this.#answers()).toEqual(before);
    const chosenAgain = ask();
    if (isExact) expect(chosenAgain).toEqual(chosen);
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
    const seen = { granted: 0, refused: 0, restarts: 0, repeated: 0, served: 0, overdue: 0 };
    fc.assert(
      fc.property(fc.array(commands, { minLength: 10, maxLength: 60 }), (history) => {
        const run = new Run();
        run.step({ do: 'full', entries: NAMES.map((name) => entry(name)) });
        for (const command of history) run.step(command);
        for (const key of Object.keys(seen) as (keyof typeof seen)[]) seen[key] += run.seen[key];
      }),
      { numRuns: RUNS },
    );
    // The histories must really go through all of it.
    expect(seen.granted).toBeGreaterThan(RUNS);
    expect(seen.refused).toBeGreaterThan(RUNS / 2);
    expect(seen.restarts).toBeGreaterThan(RUNS / 2);
    expect(seen.repeated).toBeGreaterThan(RUNS / 10);
    expect(seen.served).toBeGreaterThan(RUNS / 10);
    expect(seen.overdue).toBeGreaterThan(RUNS / 10);
  }, 120_000);
});
