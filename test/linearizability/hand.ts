/** Histories made by hand, to see what the checker says of them. */
import type { ReportRequest } from '#shared/wire/lease.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import type {
  AcquireOperation,
  Answer,
  History,
  Operation,
  Outcome,
  SeenLease,
  Span,
  Version,
  Write,
} from './history.ts';

/** Times of the call and of the answer, or of the end of what may still happen. */
export type Times = readonly [calledMs: number, endMs: number];

/** A status, one with the code of its refusal, or none. */
export type Told = number | readonly [status: number, code: string] | 'lost';

export interface Granted {
  readonly id: string;
  readonly token: number;
  readonly uid: string;
  readonly untilMs: number;
}

type Wish = Partial<Pick<AcquireOperation, 'request' | 'key' | 'body' | 'who'>>;

/** Writes a history, an operation at a time, in the order of calls. */
export class Hand {
  readonly #operations: Operation[] = [];
  readonly #settings: Partial<History>;
  readonly #versions = new Map<string, Version>();
  readonly #leases = new Map<string, SeenLease>();

  constructor(settings: Partial<History> = {}) {
    this.#settings = settings;
  }

  /** A sync that makes these entries what they are said to be; null removes one. */
  sync(
    times: Times,
    entries: Readonly<Record<string, Partial<InventoryEntry> | null>>,
    told: Told = 200,
    active?: Readonly<Record<string, number>>,
  ): this {
    const writes = Object.entries(entries).map(([uid, changes]): Write => {
      const before = this.#versions.get(uid)?.entry ?? entryOf(uid);
      const version = changes === null ? null : { entry: placed({ ...before, ...changes }) };
      if (version !== null) this.#versions.set(uid, version);
      return { uid, version };
    });
    const sync = { kind: 'sync', who: 'agent', cluster: 'c', label: 'delta' } as const;
    this.#add({ ...this.#base(times, told), ...sync, writes, active });
    return this;
  }

  /** An acquire that is answered with a lease of the proxy as it was declared last. */
  grant(times: Times, granted: Granted, wish: Wish = {}, seen: Partial<SeenLease> = {}): this {
    const { id, token, uid, untilMs } = granted;
    const version = this.#versions.get(uid);
    if (version === undefined) throw new Error(`${uid} is not declared`);
    const lease: SeenLease = {
      leaseID: id,
      token,
      proxy: viewOf(version),
      target: wish.request?.target,
      expiresMs: untilMs,
      serverMs: times[1],
      ...seen,
    };
    this.#leases.set(id, lease);
    this.#add({ ...this.#base(times, 201, lease), kind: 'acquire', ...wishOf(wish) });
    return this;
  }

  /** An acquire that gets no lease, or no answer. */
  ask(times: Times, told: Told, wish: Wish = {}, more: Partial<Answer> = {}): this {
    const base = this.#base(times, told);
    const { outcome } = base;
    const whole = outcome.kind === 'lost' ? outcome : { ...outcome, ...more };
    this.#add({ ...base, outcome: whole, kind: 'acquire', ...wishOf(wish) });
    return this;
  }

  get(times: Times, leaseID: string, told: Told = 200, seen: Partial<SeenLease> = {}): this {
    const lease =
      told === 200 ? { ...this.#lease(leaseID), serverMs: times[1], ...seen } : undefined;
    this.#add({ ...this.#base(times, told, lease), kind: 'get', leaseID });
    return this;
  }

  /** With 200: the lease lives until `untilMs` from then on. */
  renew(times: Times, leaseID: string, told: Told, untilMs = 0, ttlSeconds = 1): this {
    const lease =
      told === 200
        ? { ...this.#lease(leaseID), expiresMs: untilMs, serverMs: times[1] }
        : undefined;
    if (lease !== undefined) this.#leases.set(leaseID, lease);
    this.#add({ ...this.#base(times, told, lease), kind: 'renew', leaseID, ttlSeconds });
    return this;
  }

  release(times: Times, leaseID: string, told: Told = 204): this {
    this.#add({ ...this.#base(times, told), kind: 'release', leaseID });
    return this;
  }

  report(times: Times, leaseID: string, report: ReportRequest, told: Told = 204): this {
    this.#add({ ...this.#base(times, told), kind: 'report', leaseID, report });
    return this;
  }

  get history(): History {
    return {
      operations: this.#operations,
      outages: [],
      shards: 1,
      cooldownMs: 2_000,
      maxCooldownMs: 8_000,
      slackMs: 2,
      ...this.#settings,
    };
  }

  #lease(leaseID: string): SeenLease {
    const lease = this.#leases.get(leaseID);
    if (lease === undefined) throw new Error(`${leaseID} was not granted`);
    return lease;
  }

  #base([calledMs, endMs]: Times, told: Told, lease?: SeenLease) {
    const id = this.#operations.length + 1;
    return { id, who: 'client', calledMs, endMs, outcome: outcomeOf(told, lease) };
  }

  #add(operation: Operation & Span): void {
    this.#operations.push(operation);
  }
}

function outcomeOf(told: Told, lease: SeenLease | undefined): Outcome {
  if (told === 'lost') return { kind: 'lost', why: 'broken' };
  const [status, code] = typeof told === 'number' ? [told, undefined] : told;
  return { kind: 'answered', status, code, lease };
}

function wishOf({ request = {}, key, body, who = 'client' }: Wish) {
  return { request, key, body: body ?? JSON.stringify(request), who };
}

function entryOf(uid: string): InventoryEntry {
  return {
    uid,
    namespace: 'crawl',
    name: uid,
    instance: `${uid}-m1`,
    host: '',
    port: 3128,
    protocol: 'http',
    attributes: {},
    maxLeases: 1,
    healthy: true,
    leasable: true,
    draining: false,
  };
}

function placed(entry: InventoryEntry): InventoryEntry {
  return { ...entry, host: `${entry.instance}.test` };
}

function viewOf({ entry }: Version): SeenLease['proxy'] {
  const { namespace, name, host, port, protocol, attributes, egressIP } = entry;
  const url = `${protocol}://${host}:${port}`;
  const where = egressIP === undefined ? {} : { egressIP };
  return { cluster: 'c', namespace, name, host, port, protocol, url, attributes, ...where };
}
