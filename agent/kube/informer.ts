/**
 * A cache of one resource that follows the API server by list and watch. Whatever ends a watch
 * (reset, 410, 5xx, silence), the next one resumes from the last resource version, or from a new
 * list when that is gone; nothing but `signal` ends the loop. Listeners get keys, never objects.
 */

import { type Backoff, createBackoff } from '#agent/runtime/backoff.ts';
import { pause } from '#agent/runtime/deadline.ts';
import type { Clock, Random } from '#shared/clock.ts';
import { type Cacheable, createObjectCache } from './cache.ts';
import type { KubeClient } from './client.ts';
import { errorFromStatus, isKubeError, KubeError } from './errors.ts';
import {
  isRecord,
  type ListOptions,
  listPages,
  type ResourceType,
  resourcePath,
} from './resource.ts';
import { createSilenceTimer } from './silence.ts';
import { parseWatchEvent, splitLines } from './watch-lines.ts';

/** What an informer tells about itself; implemented by telemetry. */
export interface InformerObserver {
  listed(resource: string, objects: number): void;
  /** A list or watch failed; `failures` counts those in a row, beginning with 1. */
  failed(resource: string, error: unknown, failures: number): void;
  /** The first success after `failures` failures in a row. */
  recovered(resource: string, failures: number): void;
  /** An object that the schema does not take, once per object until it parses again. */
  unparsable(resource: string, key: string, error: unknown): void;
  /** A listener threw, which is a bug in it. */
  listenerFailed(resource: string, error: unknown): void;
}

/**
 * Whose write a change is. Whoever writes knows what it wrote and when to look again: waking it by
 * its own write would turn a status that goes to and fro into a loop without a pause.
 */
export type ChangeOrigin = 'server' | 'own';

export type ChangeListener = (key: string, origin: ChangeOrigin) => void;

export interface Informer<T extends Cacheable> {
  readonly resource: string;
  get(key: string): T | undefined;
  list(): Iterable<T>;
  /** Whether the first list is complete. */
  readonly synced: boolean;
  /** Resolves when synced; rejects with the signal's reason. */
  whenSynced(signal: AbortSignal): Promise<void>;
  /** Monotonic time of the last sign of life of the API server; -Infinity before the first. */
  readonly lastActivityMs: number;
  /** `listener` is called with each key that changed, synchronously. */
  subscribe(listener: ChangeListener): () => void;
  /**
   * Takes the object that a write returned, so that a reader does not act on a version older than
   * the agent's own last write while the watch is still behind. Listeners are told at once, with
   * the origin `own`; the same version is no change any more when the watch brings it.
   */
  observe(object: T): void;
  /** Follows the server until `signal` aborts. Call once. */
  run(signal: AbortSignal): Promise<void>;
}

export interface InformerDeps<T> {
  readonly client: KubeClient;
  readonly type: ResourceType;
  readonly options?: ListOptions;
  /** Parses the API's JSON; keep what it returns small, it stays in memory. */
  readonly parse: (object: unknown) => T;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: InformerObserver;
}

/** Spread, so that the informers of many agents do not reconnect together. */
const WATCH_TIMEOUT_SECONDS_MIN = 290;
const WATCH_TIMEOUT_SECONDS_MAX = 580;
/** A watch that ends sooner is answered with backoff, however many events it brought. */
const WATCH_LIFE_MS_MIN = 1_000;
/** After so many failures in a row the resource version is given up and everything is listed. */
const FAILURES_UNTIL_RELIST = 3;
const BACKOFF = { baseMs: 500, maxMs: 10_000 };

export function createInformer<T extends Cacheable>(deps: InformerDeps<T>): Informer<T> {
  return new ListWatch(deps);
}

class ListWatch<T extends Cacheable> implements Informer<T> {
  readonly resource: string;
  readonly #deps: InformerDeps<T>;
  readonly #path: string;
  readonly #selectors: Readonly<Record<string, string>>;
  readonly #cache = createObjectCache<T>();
  readonly #backoff: Backoff;
  readonly #listeners = new Set<ChangeListener>();
  readonly #unparsable = new Set<string>();
  readonly #synced = Promise.withResolvers<void>();
  #isSynced = false;
  #lastActivityMs = Number.NEGATIVE_INFINITY;
  /** Where the next watch begins; undefined asks for a list first. */
  #resourceVersion: string | undefined;
  /** Monotonic; undefined while no watch is established. */
  #watchingSinceMs: number | undefined;
  /** Failures in a row. */
  #failures = 0;

  constructor(deps: InformerDeps<T>) {
    const { namespace, ...selectors } = deps.options ?? {};
    this.resource = deps.type.plural;
    this.#deps = deps;
    this.#path = resourcePath(deps.type, namespace === undefined ? {} : { namespace });
    this.#selectors = selectors;
    this.#backoff = createBackoff(BACKOFF, deps.random);
  }

  get(key: string): T | undefined {
    return this.#cache.get(key);
  }

  list(): Iterable<T> {
    return this.#cache.list();
  }

  get synced(): boolean {
    return this.#isSynced;
  }

  get lastActivityMs(): number {
    return this.#lastActivityMs;
  }

  async whenSynced(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const aborted = Promise.withResolvers<never>();
    const onAbort = () => aborted.reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await Promise.race([this.#synced.promise, aborted.promise]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  observe(object: T): void {
    this.#notify(this.#cache.observe(object), 'own');
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const delayMs = await this.#cycle(signal);
      if (delayMs > 0) await pause(this.#deps.clock, delayMs, signal);
    }
  }

  /** One list, if needed, and one watch; gives the time to wait before the next cycle. */
  async #cycle(signal: AbortSignal): Promise<number> {
    this.#watchingSinceMs = undefined;
    try {
      if (this.#resourceVersion === undefined) await this.#list(signal);
      await this.#watch(signal);
      this.#alive();
      return this.#nextPauseMs();
    } catch (error) {
      return signal.aborted ? 0 : this.#failed(error, this.#nextPauseMs());
    }
  }

  /**
   * A watch that lived for a while may be followed at once. One that ended soon is not, however
   * many events it brought: a server that closes at once would be asked in a loop.
   */
  #nextPauseMs(): number {
    const sinceMs = this.#watchingSinceMs ?? Number.POSITIVE_INFINITY;
    if (this.#deps.clock.monotonicMs() - sinceMs < WATCH_LIFE_MS_MIN) return this.#backoff.nextMs();
    this.#backoff.reset();
    return 0;
  }

  #failed(error: unknown, pauseMs: number): number {
    if (isKubeError(error, 'Gone')) {
      // The history is gone, the server is well: a normal end, answered by a new list.
      this.#resourceVersion = undefined;
      return pauseMs;
    }
    this.#failures++;
    if (this.#failures >= FAILURES_UNTIL_RELIST) this.#resourceVersion = undefined;
    this.#deps.observer.failed(this.resource, error, this.#failures);
    const retryAfterMs = error instanceof KubeError ? (error.retryAfterMs ?? 0) : 0;
    return Math.max(pauseMs, retryAfterMs);
  }

  #alive(): void {
    if (this.#failures === 0) return;
    this.#deps.observer.recovered(this.resource, this.#failures);
    this.#failures = 0;
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, observer } = this.#deps;
    const items: unknown[] = [];
    let resourceVersion = '';
    this.#cache.beginList();
    for await (const page of listPages(client, this.#path, this.#selectors, signal)) {
      this.#touch();
      items.push(...page.items);
      resourceVersion = page.resourceVersion;
    }
    const kept = new Set<string>();
    const objects = items.map((item) => this.#parse(item, kept)).filter((each) => each !== null);
    for (const key of this.#unparsable) if (!kept.has(key)) this.#unparsable.delete(key);
    const changed = this.#cache.replaceAll(objects, kept);
    this.#resourceVersion = resourceVersion;
    this.#isSynced = true;
    this.#synced.resolve();
    observer.listed(this.resource, objects.length);
    this.#notify(changed);
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, clock, random } = this.#deps;
    const span = WATCH_TIMEOUT_SECONDS_MAX - WATCH_TIMEOUT_SECONDS_MIN;
    const query = {
      ...this.#selectors,
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: this.#resourceVersion,
      timeoutSeconds: WATCH_TIMEOUT_SECONDS_MIN + Math.floor(span * random()),
    };
    const silence = createSilenceTimer(clock, signal);
    try {
      const stream = await client.stream({ path: this.#path, query }, silence.signal);
      silence.restart();
      this.#touch();
      this.#watchingSinceMs = clock.monotonicMs();
      for await (const line of splitLines(stream)) {
        silence.restart();
        this.#touch();
        this.#handle(line);
      }
    } catch (error) {
      if (!silence.fired) throw error;
    } finally {
      silence.stop();
    }
  }

  #handle(line: string): void {
    const { type, object } = parseWatchEvent(line);
    if (type === 'ERROR') throw errorFromStatus(`watch of ${this.resource}`, object);
    const metadata = isRecord(object) && isRecord(object.metadata) ? object.metadata : {};
    // Before anything that can fail: an object that cannot be read must not be asked for again.
    if (typeof metadata.resourceVersion === 'string') {
      this.#resourceVersion = metadata.resourceVersion;
    }
    this.#alive();
    if (type === 'BOOKMARK') return;
    if (type === 'DELETED') {
      const key = rawKey(object);
      this.#unparsable.delete(key);
      this.#notify(this.#cache.remove(key));
      return;
    }
    const parsed = this.#parse(object, undefined);
    if (parsed !== null) this.#notify(this.#cache.upsert(parsed));
  }

  /** null for what the schema refuses; a good version that is cached already stays. */
  #parse(object: unknown, kept: Set<string> | undefined): T | null {
    const key = rawKey(object);
    try {
      const parsed = this.#deps.parse(object);
      this.#unparsable.delete(key);
      return parsed;
    } catch (error) {
      kept?.add(key);
      if (!this.#unparsable.has(key)) {
        this.#unparsable.add(key);
        this.#deps.observer.unparsable(this.resource, key, error);
      }
      return null;
    }
  }

  #touch(): void {
    this.#lastActivityMs = this.#deps.clock.monotonicMs();
  }

  #notify(keys: readonly string[], origin: ChangeOrigin = 'server'): void {
    for (const key of keys) {
      for (const listener of this.#listeners) {
        try {
          listener(key, origin);
        } catch (error) {
          this.#deps.observer.listenerFailed(this.resource, error);
        }
      }
    }
  }
}

function rawKey(object: unknown): string {
  const metadata = isRecord(object) && isRecord(object.metadata) ? object.metadata : {};
  return `${metadata.namespace ?? ''}/${metadata.name ?? ''}`;
}
