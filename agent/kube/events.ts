/**
 * Kubernetes Events on proxies (`events.k8s.io/v1`). Recording returns at once and never fails: a
 * bounded queue stands between the reconciler and the API server, and equal events become one
 * event with a count, as the recorders of client-go do it.
 */

import { createBackoff } from '#agent/runtime/backoff.ts';
import { pause } from '#agent/runtime/deadline.ts';
import type { Clock, Random } from '#shared/clock.ts';
import { GROUP } from '#shared/crd/names.ts';
import type { KubeClient } from './client.ts';
import { isKubeError, KubeError } from './errors.ts';
import { microTime } from './micro-time.ts';
import { type ResourceType, resourcePath } from './resource.ts';

export const EVENTS: ResourceType = { group: 'events.k8s.io', version: 'v1', plural: 'events' };

export interface EventSubject {
  readonly apiVersion: string;
  readonly kind: string;
  /** Also that of the event. */
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export interface ProxyEvent {
  readonly regarding: EventSubject;
  readonly type: 'Normal' | 'Warning';
  /** Why, in CamelCase: `Created`, `QuotaExceeded`. */
  readonly reason: string;
  /** What was done or tried, in CamelCase: `CreateInstance`. */
  readonly action: string;
  /** For a person; cut at 1,024 bytes; never holds credentials. */
  readonly note: string;
}

export interface EventRecorder {
  record(event: ProxyEvent): void;
  /** Sends what is recorded until `signal` aborts; what is unsent then is dropped. */
  run(signal: AbortSignal): Promise<void>;
}

export interface EventObserver {
  /** An event was given up: the queue was full, or the server refused it. */
  eventDropped(reason: 'queue-full' | 'refused', error?: unknown): void;
}

/** Events that wait to be sent; a burst beyond it is not worth the memory. */
const QUEUE_MAX = 512;
/** Event kinds that are remembered in order to be counted instead of repeated. */
const SERIES_MAX = 2_000;
/** An equal event after this long is a new story (client-go: 6 minutes). */
const SERIES_GAP_MS = 6 * 60_000;
const ATTEMPTS_MAX = 4;
const BACKOFF = { baseMs: 1_000, maxMs: 10_000 };
const NOTE_BYTES_MAX = 1_024;
const NAME_LENGTH_MAX = 253;
const REPORTER = `${GROUP}/egress-agent`;

export interface EventRecorderDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  /** Name of this agent process, such as the pod's. */
  readonly instance: string;
  readonly observer: EventObserver;
}

interface Series {
  readonly event: ProxyEvent;
  count: number;
  readonly firstMs: number;
  lastMs: number;
  /** Set once the event exists at the server. */
  name: string | undefined;
  queued: boolean;
}

export function createEventRecorder(deps: EventRecorderDeps): EventRecorder {
  return new Recorder(deps);
}

class Recorder implements EventRecorder {
  readonly #deps: EventRecorderDeps;
  /** By content, least recently seen first. */
  readonly #series = new Map<string, Series>();
  readonly #queue: Series[] = [];
  #sequence = 0;
  #wake: () => void = () => {};

  constructor(deps: EventRecorderDeps) {
    this.#deps = deps;
  }

  record(event: ProxyEvent): void {
    const nowMs = this.#deps.clock.now();
    const key = contentKey(event);
    const known = this.#series.get(key);
    const continues = known !== undefined && nowMs - known.lastMs < SERIES_GAP_MS;
    const series = continues
      ? known
      : { event, count: 0, firstMs: nowMs, lastMs: nowMs, name: undefined, queued: false };
    series.count++;
    series.lastMs = nowMs;
    this.#remember(key, series);
    if (!series.queued) this.#enqueue(series);
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const series = this.#queue.shift();
      if (series === undefined) await this.#nextRecord(signal);
      else await this.#sendWithRetries(series, signal);
    }
  }

  #remember(key: string, series: Series): void {
    this.#series.delete(key);
    this.#series.set(key, series);
    if (this.#series.size <= SERIES_MAX) return;
    const [oldest] = this.#series.keys();
    if (oldest !== undefined) this.#series.delete(oldest);
  }

  #enqueue(series: Series): void {
    if (this.#queue.length >= QUEUE_MAX) {
      this.#deps.observer.eventDropped('queue-full');
      return;
    }
    series.queued = true;
    this.#queue.push(series);
    this.#wake();
  }

  #nextRecord(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        signal.removeEventListener('abort', done);
        this.#wake = () => {};
        resolve();
      };
      this.#wake = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }

  async #sendWithRetries(series: Series, signal: AbortSignal): Promise<void> {
    const { clock, random, observer } = this.#deps;
    const backoff = createBackoff(BACKOFF, random);
    series.queued = false;
    while (!signal.aborted) {
      try {
        await this.#send(series, signal);
        return;
      } catch (error) {
        if (signal.aborted) return;
        const delayMs = backoff.nextMs();
        const hopeful = error instanceof KubeError && error.retryable;
        if (!hopeful || backoff.failures >= ATTEMPTS_MAX) {
          observer.eventDropped('refused', error);
          return;
        }
        await pause(clock, Math.max(delayMs, error.retryAfterMs ?? 0), signal);
      }
    }
  }

  async #send(series: Series, signal: AbortSignal): Promise<void> {
    if (series.name !== undefined) {
      try {
        await this.#patchCount(series, series.name, signal);
        return;
      } catch (error) {
        // The server forgets events after an hour; the story goes on with a new one.
        if (!isKubeError(error, 'NotFound')) throw error;
        series.name = undefined;
      }
    }
    await this.#create(series, signal);
  }

  async #create(series: Series, signal: AbortSignal): Promise<void> {
    const { client, instance } = this.#deps;
    const { regarding, type, reason, action, note } = series.event;
    const { namespace, name } = regarding;
    const eventName = this.#newName(name, series.firstMs);
    const body = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { namespace, name: eventName },
      eventTime: microTime(series.firstMs),
      reportingController: REPORTER,
      reportingInstance: instance,
      regarding,
      type,
      reason,
      action,
      note: cutBytes(note, NOTE_BYTES_MAX),
      ...(series.count > 1 ? { series: seriesOf(series) } : {}),
    };
    await client.request(
      { method: 'POST', path: resourcePath(EVENTS, { namespace }), body },
      signal,
    );
    series.name = eventName;
  }

  async #patchCount(series: Series, name: string, signal: AbortSignal): Promise<void> {
    const { namespace } = series.event.regarding;
    await this.#deps.client.request(
      {
        method: 'PATCH',
        path: resourcePath(EVENTS, { namespace, name }),
        body: { series: seriesOf(series) },
        contentType: 'application/merge-patch+json',
      },
      signal,
    );
  }

  /** `name.<hex>`, as client-go names events; the sequence keeps two of one instant apart. */
  #newName(regarding: string, nowMs: number): string {
    const suffix = (BigInt(nowMs) * 1_000_000n + BigInt(this.#sequence++ % 1_000_000)).toString(16);
    return `${regarding.slice(0, NAME_LENGTH_MAX - suffix.length - 1)}.${suffix}`;
  }
}

function contentKey({ regarding, type, reason, action, note }: ProxyEvent): string {
  return JSON.stringify([regarding.uid, type, reason, action, note]);
}

function seriesOf(series: Series): { count: number; lastObservedTime: string } {
  return { count: series.count, lastObservedTime: microTime(series.lastMs) };
}

/** Cuts at a character, not within one. */
function cutBytes(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= bytesMax) return text;
  return new TextDecoder().decode(bytes.subarray(0, bytesMax), { stream: true });
}
