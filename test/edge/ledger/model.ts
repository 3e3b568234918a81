/**
 * The ledger once more, slow and obviously right: it keeps the history and works out every answer
 * from the beginning, looking at every proxy.
 */
import type { NoMatch } from '#shared/wire/errors.ts';
import type { AcquireRequest, ReportResult } from '#shared/wire/lease.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { RULES } from './harness.ts';

interface ModelLease {
  readonly uid: string;
  readonly instance: string;
  readonly client: string;
  readonly key: string | undefined;
  readonly body: string;
  readonly target: string | undefined;
  readonly grantedMs: number;
  expiresMs: number;
  /** Released leases are deleted; this one lost its proxy. */
  gone: boolean;
  readonly reported: Set<string | undefined>;
}

interface Offence {
  readonly egress: string;
  readonly target: string | undefined;
  readonly grantedMs: number;
  readonly result: ReportResult;
  readonly lengthMs: number | undefined;
  readonly atMs: number;
}

/** A request for a lease, with all that decides about it. */
export interface Ask {
  readonly id: string;
  readonly request: AcquireRequest;
  readonly client: string;
  readonly leasesMax: number;
  readonly key: string | undefined;
  readonly body: string;
}

/** What the ledger must say to a request. */
export type Verdict =
  | { readonly is: 'granted'; readonly uids: readonly string[] }
  /** The lease of the key. */
  | { readonly is: 'repeated'; readonly id: string }
  | { readonly is: 'waits' }
  | { readonly is: 'no_match'; readonly noMatch: NoMatch; readonly withheld: number }
  | { readonly is: 'too_many_leases' | 'idempotency_mismatch' };

interface Waiter extends Ask {
  readonly ids: string[];
  readonly deadlineMs: number;
}

export class Model {
  readonly proxies = new Map<string, InventoryEntry>();
  readonly leases = new Map<string, ModelLease>();
  readonly sessions = new Map<string, string>();
  waiting: Waiter[] = [];
  /** Address by machine, as last seen. */
  readonly #addresses = new Map<string, string>();
  readonly #reports: Offence[] = [];
  lastSyncMs = Number.NEGATIVE_INFINITY;

  put(entry: InventoryEntry, nowMs: number): void {
    const before = this.proxies.get(entry.uid);
    if (before !== undefined && before.instance !== entry.instance) this.#end(entry.uid, nowMs);
    const machine = `${entry.uid} ${entry.instance}`;
    if (before?.instance !== entry.instance) this.#addresses.delete(machine);
    if (entry.egressIP !== undefined) this.#addresses.set(machine, entry.egressIP);
    this.proxies.set(entry.uid, entry);
  }

  remove(uid: string, nowMs: number): void {
    this.#end(uid, nowMs);
    this.proxies.delete(uid);
    for (const [key, bound] of this.sessions) if (bound === uid) this.sessions.delete(key);
  }

  active(uid: string, nowMs: number): number {
    return this.#live(nowMs).filter((lease) => lease.uid === uid).length;
  }

  /** What asking for the lease must say. */
  stateOf(id: string, nowMs: number): 'live' | 'lease_expired' | 'proxy_gone' | 'unknown_lease' {
    const lease = this.leases.get(id);
    if (lease === undefined || nowMs >= lease.expiresMs + RULES.cooldownMs) return 'unknown_lease';
    if (lease.gone) return 'proxy_gone';
    return nowMs < lease.expiresMs ? 'live' : 'lease_expired';
  }

  /** Decides about a request, and queues it if it is to wait. */
  ask(ask: Ask, nowMs: number): Verdict {
    const { key, body, request } = ask;
    const known = [...this.leases].find(
      ([, lease]) => key !== undefined && lease.key === key && this.#isLive(lease, nowMs),
    );
    const waiter = this.waiting.find((one) => key !== undefined && one.key === key);
    if ((known?.[1].body ?? waiter?.body ?? body) !== body) return { is: 'idempotency_mismatch' };
    if (known !== undefined) return { is: 'repeated', id: known[0] };
    if (waiter !== undefined) {
      waiter.ids.push(ask.id);
      return { is: 'waits' };
    }
    if (!this.#mayTake(ask, nowMs)) return { is: 'too_many_leases' };
    const uids = this.choices(ask, nowMs);
    if (uids.length > 0) return { is: 'granted', uids };
    const waitMs = (request.waitSeconds ?? 0) * 1000;
    if (waitMs === 0) return { is: 'no_match', ...this.refusal(request, nowMs) };
    this.waiting.push({ ...ask, ids: [ask.id], deadlineMs: nowMs + waitMs });
    return { is: 'waits' };
  }

  /** Any of these may be given to the request: one, unless the strategy looks at the past. */
  choices({ client, request }: Pick<Ask, 'client' | 'request'>, nowMs: number): readonly string[] {
    const { sessionKey, strategy } = request;
    const eligible = [...this.proxies.keys()].filter(
      (uid) => this.verdict(uid, request, nowMs).is === 'eligible',
    );
    const bound = sessionKey === undefined ? undefined : this.sessions.get(client + sessionKey);
    if (bound !== undefined && eligible.includes(bound)) return [bound];
    const least = Math.min(...eligible.map((uid) => this.active(uid, nowMs)));
    const best = eligible.filter((uid) => this.active(uid, nowMs) === least);
    if (strategy === 'spread') return best;
    const latency = (uid: string) => this.proxies.get(uid)?.latencyMillis ?? 10 ** 9;
    return best.sort((a, b) => latency(a) - latency(b) || (a < b ? -1 : 1)).slice(0, 1);
  }

  /** The first who waits for whom there is a proxy, and those proxies. */
  next(nowMs: number): { waiter: Waiter; uids: readonly string[] } | undefined {
    for (const waiter of this.waiting) {
      if (!this.#mayTake(waiter, nowMs)) continue;
      const uids = this.choices(waiter, nowMs);
      if (uids.length > 0) return { waiter, uids };
    }
    return undefined;
  }

  refusal(request: AcquireRequest, nowMs: number): { noMatch: NoMatch; withheld: number } {
    const counts = { atCapacity: 0, inCooldown: 0, unhealthy: 0 };
    let withheld = 0;
    let freeMs = Number.POSITIVE_INFINITY;
    for (const uid of this.proxies.keys()) {
      const verdict = this.verdict(uid, request, nowMs);
      if (verdict.is === 'no match' || verdict.is === 'eligible') continue;
      if (verdict.is === 'withheld') withheld++;
      else counts[verdict.is]++;
      freeMs = Math.min(freeMs, verdict.freeMs);
    }
    const considered = counts.atCapacity + counts.inCooldown + counts.unhealthy;
    const retryAfterSeconds = Math.max(1, Math.ceil((freeMs - nowMs) / 1000));
    const retry = freeMs === Number.POSITIVE_INFINITY ? {} : { retryAfterSeconds };
    return { noMatch: { considered, ...counts, eligible: 0, ...retry }, withheld };
  }

  grant(ask: Ask, id: string, uid: string, ttlMs: number, nowMs: number): void {
    const { client, key, body, request } = ask;
    const { target, sessionKey } = request;
    const instance = this.proxies.get(uid)?.instance ?? '';
    const lease = { uid, instance, client, key, body, target, grantedMs: nowMs, gone: false };
    this.leases.set(id, { ...lease, expiresMs: nowMs + ttlMs, reported: new Set() });
    if (sessionKey !== undefined) this.sessions.set(client + sessionKey, uid);
  }

  report(
    id: string,
    result: ReportResult,
    target: string | undefined,
    lengthMs: number | undefined,
    nowMs: number,
  ): void {
    const lease = this.leases.get(id);
    if (lease === undefined || this.stateOf(id, nowMs) === 'unknown_lease') return;
    const { uid, instance, grantedMs, reported } = lease;
    const about = target ?? lease.target;
    if (result !== 'ok' && reported.has(about)) return;
    if (result !== 'ok') reported.add(about);
    const base = { target: about, grantedMs, result, lengthMs, atMs: nowMs };
    const [egress = '', ...others] = this.#egresses(uid, instance);
    this.#reports.push({ ...base, egress });
    if (result !== 'ok') return;
    for (const other of others) this.#reports.push({ ...base, egress: other });
  }

  /** What the proxy is for the request. */
  verdict(
    uid: string,
    { selector = {}, target }: AcquireRequest,
    nowMs: number,
  ): {
    is: 'no match' | 'withheld' | 'unhealthy' | 'inCooldown' | 'atCapacity' | 'eligible';
    freeMs: number;
  } {
    const never = Number.POSITIVE_INFINITY;
    const entry = this.proxies.get(uid);
    const isMatch = Object.entries(selector).every(([k, v]) => entry?.attributes[k] === v);
    if (entry === undefined || !isMatch) return { is: 'no match', freeMs: never };
    if (!entry.leasable || entry.draining) return { is: 'withheld', freeMs: never };
    const isStale = nowMs - this.lastSyncMs >= RULES.agentStaleMs;
    if (entry.healthy !== true || isStale) return { is: 'unhealthy', freeMs: never };
    const ends = this.#live(nowMs).filter((lease) => lease.uid === uid);
    const times = ends.map(({ expiresMs }) => expiresMs).sort((a, b) => a - b);
    const slotMs = times[times.length - entry.maxLeases] ?? 0;
    const cooledMs = Math.max(
      ...this.#egresses(entry.uid, entry.instance).flatMap((egress) => [
        this.#cooledMs(egress, undefined),
        target === undefined ? 0 : this.#cooledMs(egress, target),
      ]),
    );
    if (cooledMs > nowMs) return { is: 'inCooldown', freeMs: Math.max(cooledMs, slotMs) };
    if (slotMs > 0) return { is: 'atCapacity', freeMs: slotMs };
    return { is: 'eligible', freeMs: nowMs };
  }

  #mayTake({ client, leasesMax }: Ask, nowMs: number): boolean {
    return this.#live(nowMs).filter((lease) => lease.client === client).length < leasesMax;
  }

  #live(nowMs: number): ModelLease[] {
    return [...this.leases.values()].filter((lease) => this.#isLive(lease, nowMs));
  }

  #isLive({ gone, expiresMs }: ModelLease, nowMs: number): boolean {
    return !gone && expiresMs > nowMs;
  }

  #end(uid: string, nowMs: number): void {
    for (const lease of this.leases.values()) {
      if (lease.uid === uid && lease.expiresMs > nowMs) lease.gone = true;
    }
  }

  #egresses(uid: string, instance: string): string[] {
    const machine = `${uid} ${instance}`;
    const address = this.#addresses.get(machine);
    return address === undefined ? [machine] : [address, machine];
  }

  /** Goes through all reports on the pair from the beginning. */
  #cooledMs(egress: string, target: string | undefined): number {
    let untilMs: number | undefined;
    let strikes = 0;
    for (const report of this.#reports) {
      if (report.egress !== egress || report.target !== target) continue;
      const isAfter = untilMs === undefined || report.grantedMs >= untilMs;
      if (report.result === 'ok') {
        if (isAfter) [untilMs, strikes] = [undefined, 0];
        continue;
      }
      if (isAfter) strikes++;
      const lengthMs = report.lengthMs ?? RULES.cooldownMs * 2 ** (strikes - 1);
      const endMs = report.atMs + Math.min(lengthMs, RULES.maxCooldownMs);
      untilMs = Math.max(untilMs ?? 0, endMs);
    }
    return untilMs ?? 0;
  }
}
