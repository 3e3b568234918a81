/**
 * How a request for a lease is answered: by the lease that its id or key already has, by the proxy
 * of its session, by the best one, by a place in the queue, or by the reason why not.
 */

import type { FindCall } from './calls.ts';
import type { Clients } from './clients.ts';
import { egressOf } from './egress.ts';
import type { Inventory } from './inventory.ts';
import type { Leases } from './leases.ts';
import type { Change, Lease, Mutation, ProxyRecord } from './model.ts';
import type { PassedKeys } from './passed-keys.ts';
import type { AcquireResult, FindResult } from './results.ts';
import type { Rules } from './rules.ts';
import type { Selection } from './selection.ts';
import type { Sessions } from './sessions.ts';
import { type AcquireTerms, sessionOf } from './terms.ts';
import { nextToken } from './tokens.ts';
import { leaseView } from './views.ts';
import type { Waiter, Waiting } from './waiting.ts';

const TOO_MANY_KEYS = {
  ok: false,
  code: 'overloaded',
  reason: 'too many idempotency keys',
} as const;

/** When a place in the queue may have become free. */
const QUEUE_RETRY_SECONDS = 1;

export interface AcquiringDeps {
  readonly rules: Rules;
  readonly shard: number;
  readonly inventory: Inventory;
  readonly selection: Selection;
  readonly leases: Leases;
  readonly sessions: Sessions;
  readonly passed: PassedKeys;
  readonly clients: Clients;
  readonly waiting: Waiting;
}

/** An answer to a request that has waited, under the id that it was made with. */
export interface Settled {
  readonly id: string;
  readonly result: AcquireResult;
}

/** undefined: the request waits, and its answer comes with `serve`. */
type Answer = Mutation<AcquireResult | undefined>;

export class Acquiring {
  readonly #deps: AcquiringDeps;
  #lastToken: number;
  readonly #settled: Settled[] = [];
  /** Clients that hold one lease less, and have requests that may have waited for just that. */
  readonly #relieved = new Set<string>();

  constructor(deps: AcquiringDeps, tokenFloor: number) {
    this.#deps = deps;
    this.#lastToken = tokenFloor;
    deps.selection.isAwaited = deps.waiting.size > 0;
  }

  get lastToken(): number {
    return this.#lastToken;
  }

  raiseTokens(floor: number): void {
    this.#lastToken = Math.max(this.#lastToken, floor);
  }

  acquire(terms: AcquireTerms, nowMs: number): Answer {
    const known = this.#repeated(terms, nowMs);
    if (known !== undefined) return known;
    const { rules, leases, selection } = this.#deps;
    if (terms.ttlSeconds > rules.maxTtlSeconds) {
      return refuse({ ok: false, code: 'ttl_too_long', maxTtlSeconds: rules.maxTtlSeconds });
    }
    if (leases.isFull) return refuse({ ok: false, code: 'overloaded', reason: 'too many leases' });
    if (!this.#mayTake(terms)) return refuse(this.#tooMany(terms, nowMs));
    const bound = this.#bound(terms.session);
    if (terms.place === 'home' && bound === 'elsewhere') {
      return refuse({ ok: false, code: 'passed_on' });
    }
    const proxy =
      bound !== undefined && bound !== 'elsewhere' && selection.fits(bound.proxy, terms.wish)
        ? bound.proxy
        : selection.best(terms.wish);
    if (proxy !== undefined) {
      const { lease, changes } = this.#grant(proxy, terms, terms.leaseID, nowMs);
      return { result: granted(lease, proxy, nowMs), changes };
    }
    return terms.waitMs > 0 ? this.#queue(terms, nowMs) : this.#noMatch(terms, nowMs);
  }

  /** What there is of an idempotency or session key, without granting anything. */
  find({ idempotency, client, request }: FindCall, nowMs: number): FindResult {
    const { leases, selection } = this.#deps;
    const lease = idempotency && leases.findByKey(idempotency.key);
    if (lease?.proxy !== undefined) {
      if (lease.row.idempotencyBody !== idempotency?.body) return { mismatch: true };
      lease.isShared = true;
      return { lease: leaseView(lease, lease.proxy, nowMs) };
    }
    const bound = this.#bound(sessionOf(client, request.sessionKey));
    if (bound === undefined || bound === 'elsewhere') return {};
    const { selector = {}, target = null } = request;
    return selection.fits(bound.proxy, { selector, target }) ? { boundToken: bound.token } : {};
  }

  /** Takes the request that was made with this id out of the queue. */
  leave(id: string): void {
    const { waiting } = this.#deps;
    if (waiting.find(id) === undefined) return;
    const waiter = waiting.leave(id);
    this.#settled.push({ id, result: { ok: false, code: 'cancelled' } });
    if (waiter !== undefined) this.#left(waiter);
  }

  relieved(client: string): void {
    this.#relieved.add(client);
  }

  /** Gives what has become free to those who wait for it, and up on those who waited long enough. */
  serve(nowMs: number): readonly Change[] {
    const { selection, waiting, clients } = this.#deps;
    const isRelieved = [...this.#relieved].some((client) => clients.waiting(client) > 0);
    this.#relieved.clear();
    if (waiting.size === 0) return [];
    const changes: Change[] = [];
    const improved = selection.takeImproved();
    const [proxy] = improved;
    if (isRelieved || improved.length > 1) this.#serveAll(nowMs, changes);
    else if (proxy !== undefined) this.#serveFrom(proxy, nowMs, changes);
    for (;;) {
      const waiter = waiting.takeOverdue(nowMs);
      if (waiter === undefined) return changes;
      this.#left(waiter);
      this.#settle(waiter, selection.refusal(waiter.terms.wish, nowMs));
    }
  }

  /** One proxy became free: nothing else is, for anybody who waits. */
  #serveFrom(proxy: ProxyRecord, nowMs: number, changes: Change[]): void {
    const { selection, waiting } = this.#deps;
    for (;;) {
      const waiter = waiting.firstFor(
        ({ wish }) => selection.fits(proxy, wish),
        (terms) => this.#mayTake(terms),
      );
      if (waiter === undefined || !this.#satisfy(waiter, nowMs, changes)) return;
    }
  }

  /** Several became free: each who waits takes the best for it, in the order of their coming. */
  #serveAll(nowMs: number, changes: Change[]): void {
    const inVain = new Set<unknown>();
    for (const { waiter, group } of this.#deps.waiting.inOrder()) {
      if (inVain.has(group) || !this.#mayTake(waiter.terms)) continue;
      if (!this.#satisfy(waiter, nowMs, changes)) inVain.add(group);
    }
  }

  takeSettled(): Settled[] {
    return this.#settled.splice(0);
  }

  /** The answer to a request that was made before, under the same id or the same key. */
  #repeated(terms: AcquireTerms, nowMs: number): Answer | undefined {
    const { leases, waiting, passed } = this.#deps;
    const { leaseID, idempotency, place } = terms;
    const own = leases.find(leaseID);
    if (own !== undefined) {
      if (own.proxy !== undefined) return refuse(granted(own, own.proxy, nowMs));
      return refuse({ ok: false, code: 'cancelled' });
    }
    if (waiting.find(leaseID) !== undefined) return { result: undefined, changes: [] };
    if (idempotency === undefined) return undefined;
    const lease = leases.findByKey(idempotency.key);
    const waiter = waiting.findByKey(idempotency.key);
    const body = lease?.row.idempotencyBody ?? waiter?.terms.idempotency?.body;
    if (body !== undefined && body !== idempotency.body) {
      return refuse({ ok: false, code: 'idempotency_mismatch' });
    }
    if (lease?.proxy !== undefined) {
      lease.isShared = true;
      return refuse(granted(lease, lease.proxy, nowMs));
    }
    if (waiter !== undefined) {
      waiting.join(waiter, leaseID);
      return { result: undefined, changes: [] };
    }
    const isPassed = passed.has(idempotency.key);
    if (isPassed && place !== 'first' && place !== 'further') {
      return refuse({ ok: false, code: 'passed_on' });
    }
    return place === 'note' ? this.#note(idempotency.key, nowMs) : undefined;
  }

  /** The request is about to go on to other shards. */
  #note(key: string, nowMs: number): Answer {
    const changes = this.#pass(key, nowMs);
    if (changes === undefined) return refuse(TOO_MANY_KEYS);
    return { result: { ok: false, code: 'noted' }, changes };
  }

  #pass(key: string, nowMs: number): Change[] | undefined {
    const { passed, rules } = this.#deps;
    return passed.add(key, nowMs + rules.maxTtlSeconds * 1000);
  }

  #bound(session: string | undefined) {
    const row = session === undefined ? undefined : this.#deps.sessions.find(session);
    if (row === undefined) return undefined;
    if (row.uid === null) return 'elsewhere';
    const proxy = this.#deps.inventory.find(row.cluster, row.uid);
    return proxy === undefined ? undefined : { proxy, token: row.token };
  }

  #mayTake({ client: { name, leasesMax } }: AcquireTerms): boolean {
    if (leasesMax === undefined) return true;
    return (this.#deps.leases.byClient.get(name)?.size ?? 0) < leasesMax;
  }

  #tooMany({ client }: AcquireTerms, nowMs: number): AcquireResult {
    const freeMs = this.#deps.leases.firstExpiryMs(client.name);
    const retryAfterSeconds = Math.max(1, Math.ceil((freeMs - nowMs) / 1000));
    return {
      ok: false,
      code: 'too_many_leases',
      ...(freeMs === Number.POSITIVE_INFINITY ? {} : { retryAfterSeconds }),
    };
  }

  #queue(terms: AcquireTerms, nowMs: number): Answer {
    const { waiting, selection, clients } = this.#deps;
    if (waiting.isFull) {
      const retryAfterSeconds = QUEUE_RETRY_SECONDS;
      return refuse({ ok: false, code: 'queue_full', retryAfterSeconds });
    }
    waiting.add(terms, nowMs + terms.waitMs);
    clients.waits(terms.client.name, 1);
    selection.isAwaited = true;
    return { result: undefined, changes: [] };
  }

  #noMatch(terms: AcquireTerms, nowMs: number): Answer {
    const { selection, sessions } = this.#deps;
    const result = selection.refusal(terms.wish, nowMs);
    if (terms.place !== 'home') return refuse(result);
    const { idempotency, session } = terms;
    const marked = idempotency === undefined ? [] : this.#pass(idempotency.key, nowMs);
    if (marked === undefined) return refuse(TOO_MANY_KEYS);
    const left = session === undefined ? [] : sessions.passOn(session);
    return { result, changes: [...marked, ...left] };
  }

  #grant(proxy: ProxyRecord, terms: AcquireTerms, id: string, nowMs: number) {
    const { leases, selection, sessions, shard } = this.#deps;
    const { idempotency, session, ttlSeconds, wish, client } = terms;
    const token = nextToken(this.#lastToken, nowMs, shard);
    this.#lastToken = token;
    const { lease, change } = leases.grant(proxy, {
      id,
      token,
      client: client.name,
      instance: proxy.entry.instance,
      egress: egressOf(proxy),
      target: wish.target,
      idempotencyKey: idempotency?.key ?? null,
      idempotencyBody: idempotency?.body ?? null,
      ttlSeconds,
      grantedMs: nowMs,
      expiresMs: nowMs + ttlSeconds * 1000,
    });
    selection.used(proxy);
    const changes: Change[] = [change];
    if (session !== undefined) changes.push(...sessions.bind(session, proxy, token));
    return { lease, changes };
  }

  #satisfy(waiter: Waiter, nowMs: number, changes: Change[]): boolean {
    const { selection, waiting } = this.#deps;
    const { terms, ids } = waiter;
    const bound = this.#bound(terms.session);
    const isBound = bound !== undefined && bound !== 'elsewhere';
    const proxy =
      isBound && selection.fits(bound.proxy, terms.wish) ? bound.proxy : selection.best(terms.wish);
    // Whoever asked last under the same key is the one that is still there.
    const id = ids.at(-1);
    if (proxy === undefined || id === undefined) return false;
    waiting.remove(waiter);
    this.#left(waiter);
    const { lease, changes: written } = this.#grant(proxy, terms, id, nowMs);
    lease.isShared = ids.length > 1;
    changes.push(...written);
    this.#settle(waiter, granted(lease, proxy, nowMs));
    return true;
  }

  #settle({ ids, terms }: Waiter, result: AcquireResult): void {
    this.#deps.clients.count(terms.client.name, result.ok ? 'granted' : result.code);
    for (const id of ids) this.#settled.push({ id, result });
  }

  #left(waiter: Waiter): void {
    const { selection, waiting, clients } = this.#deps;
    clients.waits(waiter.terms.client.name, -1);
    selection.isAwaited = waiting.size > 0;
  }
}

function granted(lease: Lease, proxy: ProxyRecord, nowMs: number): AcquireResult {
  return { ok: true, lease: leaseView(lease, proxy, nowMs) };
}

/** An answer that changes nothing. */
function refuse(result: AcquireResult): Answer {
  return { result, changes: [] };
}
