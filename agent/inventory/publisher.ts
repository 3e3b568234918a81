/**
 * Pushes the inventory to the edge and keeps it true (contract §3). It remembers what the edge has
 * acknowledged and sends the difference; after anything uncertain it sends everything under the
 * next `seq`, so that nothing is ever guessed. What is sent is always the state of the moment.
 */

import { type Backoff, createBackoff } from '#agent/runtime/backoff.ts';
import { pause } from '#agent/runtime/deadline.ts';
import type { Clock, Random } from '#shared/clock.ts';
import { HEARTBEAT_INTERVAL_MS, type SyncRequest } from '#shared/wire/sync.ts';
import type { EdgeClient, SyncOutcome } from './edge-client.ts';
import type { Feedback } from './feedback.ts';
import { applyPage, deltaPages, fullPages, type Page, type Sent, syncBody } from './pages.ts';
import type { Inventory } from './snapshot.ts';

export type SyncKind = 'full' | 'delta' | 'heartbeat';

/** What the publisher tells about itself; implemented by telemetry. */
export interface PublisherObserver {
  /** A request was answered, or not. `bytes` is the size before compression. */
  synced(kind: SyncKind, outcome: SyncOutcome['kind'], bytes: number, durationMs: number): void;
  /** The edge went away; called once until `edgeBack`. */
  edgeAway(message: string): void;
  edgeBack(awayMs: number): void;
  /** The edge refuses the agent; called once per reason until a sync is accepted. */
  refused(message: string): void;
  /** Another agent speaks for this cluster; called once until a sync is accepted. */
  staleTerm(term: number): void;
}

export interface Publisher {
  /** Something may have changed. Cheap; never throws. */
  notify(): void;
  /**
   * Leases that are left on a proxy which drains, as of the edge's last answer; undefined while it
   * is not certain that the edge gives out no more of it.
   */
  remaining(uid: string): number | undefined;
  /** Publishes until `signal` aborts and the request in flight has ended. Call once. */
  run(signal: AbortSignal): Promise<void>;
}

export interface PublisherDeps {
  readonly edge: EdgeClient;
  /** The inventory as it is now. */
  readonly inventory: () => Inventory;
  readonly feedback: Feedback;
  readonly clock: Clock;
  readonly random: Random;
  /** New at each start of the process. */
  readonly session: string;
  /** Grows with each election; see contract §3. */
  readonly term: number;
  readonly observer: PublisherObserver;
}

/** A change waits this long for company; with the request itself it stays below 250 ms. */
export const DEBOUNCE_MS = 50;
/** While something drains its end is waited for, and only an answer can tell of it. */
export const DRAIN_HEARTBEAT_INTERVAL_MS = 2_000;
const BACKOFF = { baseMs: 500, maxMs: 15_000 };
/** Whoever has the higher term is leader now; asking more often would only disturb it. */
const STALE_TERM_PAUSE_MS = 30_000;
/** A refusal needs a person, who should see the effect of a repair soon. */
const REFUSED_PAUSE_MS = 15_000;

export function createPublisher(deps: PublisherDeps): Publisher {
  return new InventoryPublisher(deps);
}

class InventoryPublisher implements Publisher {
  readonly #deps: PublisherDeps;
  readonly #backoff: Backoff;
  /** Of the last request. Never used twice: the edge does not apply a repeated one. */
  #seq = 0;
  /** Undefined: the edge's state is unknown, and a full sync comes next. */
  #sent: Sent | undefined;
  /** `seq` of the request that made the edge's state what `#sent` says. */
  #basis = 0;
  #dirty = true;
  #wake: () => void = () => {};
  #lastSentMs = Number.NEGATIVE_INFINITY;
  #awaySinceMs: number | undefined;
  #complaint: string | undefined;

  constructor(deps: PublisherDeps) {
    this.#deps = deps;
    this.#backoff = createBackoff(BACKOFF, deps.random);
  }

  notify(): void {
    this.#dirty = true;
    this.#wake();
  }

  remaining(uid: string): number | undefined {
    if (this.#sent === undefined) return undefined;
    const acknowledged = this.#sent.get(uid);
    // What the edge does not know of it does not lease.
    if (acknowledged === undefined) return 0;
    return acknowledged.draining ? this.#deps.feedback.activeLeases(uid) : undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#untilDue(signal);
      if (signal.aborted) return;
      const outcome = await this.#publish(signal).catch((error: unknown) => {
        if (signal.aborted) return undefined;
        throw error;
      });
      if (outcome === undefined) continue;
      await pause(this.#deps.clock, this.#settle(outcome), signal);
    }
  }

  /** Waits for a change (and then a moment more for others), or for the next heartbeat. */
  async #untilDue(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    if (this.#sent === undefined) return;
    if (!this.#dirty) {
      await this.#changed(this.#heartbeatInMs(), signal);
    }
    if (this.#dirty) await pause(clock, DEBOUNCE_MS, signal);
  }

  #changed(timeoutMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        timer.cancel();
        signal.removeEventListener('abort', done);
        this.#wake = () => {};
        resolve();
      };
      const timer = this.#deps.clock.setTimer(done, timeoutMs);
      signal.addEventListener('abort', done, { once: true });
      this.#wake = done;
    });
  }

  /** Brings the edge up to date; the outcome of the last request, or of the first that failed. */
  async #publish(signal: AbortSignal): Promise<SyncOutcome | undefined> {
    this.#dirty = false;
    const inventory = this.#deps.inventory();
    if (this.#sent === undefined) return this.#publishFull(inventory, signal);
    const pages = deltaPages(this.#sent, inventory);
    if (pages.length > 0) return this.#publishDelta(this.#sent, pages, signal);
    if (this.#heartbeatInMs() > 0) return undefined;
    return this.#send('heartbeat', undefined, { basis: this.#basis }, signal);
  }

  async #publishFull(inventory: Inventory, signal: AbortSignal): Promise<SyncOutcome | undefined> {
    const pages = fullPages(inventory);
    const sent: Sent = new Map();
    let outcome: SyncOutcome | undefined;
    for (const [index, page] of pages.entries()) {
      const place = pages.length > 1 ? { page: { index, of: pages.length } } : {};
      outcome = await this.#send('full', page, place, signal);
      if (outcome.kind !== 'accepted') return outcome;
      applyPage(sent, page);
    }
    this.#sent = sent;
    this.#basis = this.#seq;
    this.#deps.feedback.retain((uid) => inventory.has(uid));
    return outcome;
  }

  async #publishDelta(
    sent: Sent,
    pages: readonly Page[],
    signal: AbortSignal,
  ): Promise<SyncOutcome | undefined> {
    let outcome: SyncOutcome | undefined;
    for (const page of pages) {
      outcome = await this.#send('delta', page, { basis: this.#basis }, signal);
      if (outcome.kind !== 'accepted') return outcome;
      applyPage(sent, page);
      this.#basis = this.#seq;
    }
    this.#deps.feedback.retain((uid) => sent.has(uid));
    return outcome;
  }

  async #send(
    kind: SyncKind,
    page: Page | undefined,
    place: Pick<SyncRequest, 'page' | 'basis'>,
    signal: AbortSignal,
  ): Promise<SyncOutcome> {
    const { edge, clock, term, session, feedback, observer } = this.#deps;
    this.#seq++;
    const envelope = { term, session, seq: this.#seq, kind, ...place };
    const body = syncBody(envelope, page);
    const startedMs = clock.monotonicMs();
    const outcome = await edge.sync(body, signal);
    const nowMs = clock.monotonicMs();
    observer.synced(kind, outcome.kind, Buffer.byteLength(body), nowMs - startedMs);
    this.#lastSentMs = nowMs;
    if (outcome.kind === 'accepted') feedback.apply(outcome.response, nowMs);
    return outcome;
  }

  #heartbeatInMs(): number {
    const drains = [...(this.#sent?.values() ?? [])].some(({ draining }) => draining);
    const intervalMs = drains ? DRAIN_HEARTBEAT_INTERVAL_MS : HEARTBEAT_INTERVAL_MS;
    return this.#lastSentMs + intervalMs - this.#deps.clock.monotonicMs();
  }

  /** Draws the consequences of an outcome; gives the time to wait before the next request. */
  #settle(outcome: SyncOutcome): number {
    const { observer, clock, term } = this.#deps;
    if (outcome.kind !== 'unavailable') this.#edgeAnswered();
    if (outcome.kind === 'accepted') {
      this.#backoff.reset();
      this.#complaint = undefined;
      return 0;
    }
    // Whether the request was applied may be unknown: only a full sync is right in any case.
    this.#sent = undefined;
    const delayMs = this.#backoff.nextMs();
    switch (outcome.kind) {
      case 'resync-required':
        return this.#backoff.failures === 1 ? 0 : delayMs;
      case 'stale-term':
        this.#complain('stale-term', () => observer.staleTerm(term));
        return STALE_TERM_PAUSE_MS;
      case 'refused':
        this.#complain(outcome.message, () => observer.refused(outcome.message));
        return REFUSED_PAUSE_MS;
      case 'unavailable':
        if (this.#awaySinceMs === undefined) {
          this.#awaySinceMs = clock.monotonicMs();
          observer.edgeAway(outcome.message);
        }
        return delayMs;
    }
  }

  #edgeAnswered(): void {
    if (this.#awaySinceMs === undefined) return;
    this.#deps.observer.edgeBack(this.#deps.clock.monotonicMs() - this.#awaySinceMs);
    this.#awaySinceMs = undefined;
  }

  /** Tells each reason once; request ids within a message would make every one look new. */
  #complain(message: string, tell: () => void): void {
    const reason = message.replace(/\(request [^)]*\)/, '');
    if (this.#complaint === reason) return;
    this.#complaint = reason;
    tell();
  }
}
