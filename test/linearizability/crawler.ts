/**
 * One client: one random operation after the other, on leases of its own, on those of others at the
 * same time as they, and on leases that are long over.
 */
import { systemClock as clock, type Random } from '#shared/clock.ts';
import type { AcquireRequest } from '#shared/wire/lease.ts';
import { between, pick } from '#test/integration/seed.ts';
import type { Calls, Keyed } from './calls.ts';
import { type Common, push } from './common.ts';
import type { Answer, Outcome } from './history.ts';
import { reportOf, ttlOf, wishOf } from './wishes.ts';

/** Leases that a client holds at once; all clients together want more than there are. */
const HELD_MAX = 3;
/** Of the leases that a client is done with; the others are released. */
const LEFT = 0.1;
const KEYS_MAX = 8;
/** Repetitions of a request without an answer. */
const ATTEMPTS_MAX = 6;
const RETRY_MS_MAX = 120;
const REFUSED_MS_MAX = 40;

export interface CrawlerOptions {
  readonly name: string;
  readonly calls: Calls;
  readonly common: Common;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** After each operation that was answered. */
  readonly onAnswer: (answer: Answer) => void;
}

export class Crawler {
  readonly #options: CrawlerOptions;
  readonly #held: string[] = [];
  /** Requests with a key, to be repeated at some later time. */
  readonly #keyed: Keyed[] = [];
  #lastKey = 0;

  constructor(options: CrawlerOptions) {
    this.#options = options;
  }

  /** Works until the signal. */
  async run(): Promise<void> {
    const { signal, random } = this.#options;
    while (!signal.aborted) {
      const outcome = await this.#act(random());
      // As crawlers do, too: neither connections nor requests that are refused come as a flood.
      if (outcome?.kind !== 'answered') await clock.sleep(between(random, 5, RETRY_MS_MAX));
      else if (outcome.status === 409) await clock.sleep(between(random, 0, REFUSED_MS_MAX));
    }
  }

  async #act(roll: number): Promise<Outcome | undefined> {
    const { random, common } = this.#options;
    if (roll < 0.1) return this.#use(common.any(random));
    if (roll < 0.13) return this.#repeatSome();
    const leaseID = pick(random, this.#held);
    if (leaseID === undefined) return this.#acquire();
    if (roll < 0.48) return this.#held.length < HELD_MAX ? this.#acquire() : this.#end(leaseID);
    return roll < 0.68 ? this.#end(leaseID) : this.#use(leaseID);
  }

  /** Gives one up: mostly by a release, else by letting its time run out. */
  async #end(leaseID: string): Promise<Outcome | undefined> {
    const { random, common, calls } = this.#options;
    this.#forget(leaseID);
    if (random() < LEFT) {
      common.leave(leaseID);
      return this.#use(leaseID);
    }
    common.release(leaseID);
    return this.#did(await calls.release(leaseID));
  }

  /** Does something on a lease, which may be over, or somebody else's. */
  async #use(leaseID: string | undefined): Promise<Outcome | undefined> {
    const { random, calls } = this.#options;
    if (leaseID === undefined) return this.#acquire();
    const roll = random();
    if (roll < 0.04) {
      this.#forget(leaseID);
      return this.#did(await calls.release(leaseID));
    }
    if (roll < 0.4) return this.#did(await calls.get(leaseID), leaseID);
    if (roll < 0.7) return this.#did(await calls.renew(leaseID, ttlOf(random)), leaseID);
    return this.#did(await calls.report(leaseID, reportOf(random)));
  }

  async #acquire(): Promise<Outcome | undefined> {
    const { random, name } = this.#options;
    const request = wishOf(random);
    const isKeyed = random() < 0.5;
    const call: Keyed = { request, ...(isKeyed ? { key: `${name}-${++this.#lastKey}` } : {}) };
    if (isKeyed) this.#remember(call);
    const roll = isKeyed ? random() : 1;
    if (roll < 0.06) {
      // Twice at the same time, and one of them, or both, not to the end.
      const [outcome] = await Promise.all([this.#impatient(call), this.#impatient(call)]);
      return outcome;
    }
    const outcome = await this.#impatient(call);
    if (roll < 0.1) await this.#granted(call);
    else if (roll < 0.13) await this.#granted({ ...call, request: other(request) });
    return outcome;
  }

  /** Once more what was asked for some time ago; its lease lives, or is over. */
  async #repeatSome(): Promise<Outcome | undefined> {
    const call = pick(this.#options.random, this.#keyed);
    return call === undefined ? this.#acquire() : this.#granted(call);
  }

  /** Asks until there is an answer, if the request has a key that makes that safe. */
  async #granted(call: Keyed): Promise<Outcome | undefined> {
    const { calls, random, common, signal } = this.#options;
    for (let attempt = 1; ; attempt++) {
      const outcome = this.#did(await calls.acquire(attempt === 1 ? call : { ...call, signal }));
      if (outcome?.kind === 'answered' && outcome.status < 500) {
        const { lease } = outcome;
        if (lease === undefined || this.#held.includes(lease.leaseID)) return outcome;
        this.#held.push(lease.leaseID);
        if (random() < 0.1) common.share(lease.leaseID);
        return outcome;
      }
      const isGivenUp = call.key === undefined || attempt === ATTEMPTS_MAX || random() < 0.2;
      if (isGivenUp || signal.aborted) return outcome;
      await clock.sleep(between(random, 5, RETRY_MS_MAX));
    }
  }

  /** Of those that wait some hang up; with a key, they come again at once. */
  #impatient(call: Keyed): Promise<Outcome | undefined> {
    const { random } = this.#options;
    if (call.request.waitSeconds === undefined || random() < 0.6) return this.#granted(call);
    return this.#granted({ ...call, signal: AbortSignal.timeout(between(random, 5, 400)) });
  }

  #did(outcome: Outcome | undefined, leaseID?: string): Outcome | undefined {
    if (outcome?.kind !== 'answered') return outcome;
    this.#options.onAnswer(outcome);
    if (leaseID !== undefined && outcome.status >= 400 && outcome.status < 500) {
      this.#forget(leaseID);
    }
    return outcome;
  }

  #forget(leaseID: string): void {
    const index = this.#held.indexOf(leaseID);
    if (index >= 0) this.#held.splice(index, 1);
  }

  #remember(call: Keyed): void {
    push(this.#keyed, call, KEYS_MAX);
  }
}

/** A request for something else. */
function other({ ttlSeconds = 1, ...request }: AcquireRequest): AcquireRequest {
  return { ...request, ttlSeconds: ttlSeconds + 1 > 10 ? 1 : ttlSeconds + 1 };
}
