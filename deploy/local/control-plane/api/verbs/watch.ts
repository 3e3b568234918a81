/**
 * `watch`: the changes of one resource in order. Each watch holds a bounded buffer; a client that
 * reads too slowly is told to list again rather than served a gap.
 */
import type { Clock } from '#shared/clock.ts';
import type { JsonObject } from '../../json.ts';
import { type ApiResource, apiVersionOf } from '../../registry/api-resource.ts';
import type { Change } from '../../storage/object-store.ts';
import { withMetadata } from '../object-meta.ts';
import { badRequest, expired, resourceVersionTooLarge } from '../status-error.ts';
import { shown, type VerbDeps } from './context.ts';
import { parseRevision } from './list.ts';
import { type Predicate, parseSelection } from './selectors.ts';
import type { WatchEvent, WatchOptions } from './verbs.ts';

/** Live changes that wait for the reader; its start is bounded by the store and its history. */
const BUFFERED_EVENTS_MAX = 10_000;
const BOOKMARK_MS = 60_000;
/** As long as the real server lets a watch without `timeoutSeconds` live, or so. */
const TIMEOUT_SECONDS_DEFAULT = 1800;
const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** Starts at once: changes after this call are told, however late the events are read. */
export function watchObjects(
  deps: VerbDeps,
  resource: ApiResource,
  options: WatchOptions,
  signal: AbortSignal,
): AsyncIterable<WatchEvent> {
  const matches = parseSelection(resource, options);
  const feed = new Feed(deps, resource, options, matches);
  feed.start(signal);
  return feed;
}

class Feed implements AsyncIterable<WatchEvent> {
  readonly #deps: VerbDeps;
  readonly #resource: ApiResource;
  readonly #options: WatchOptions;
  readonly #matches: Predicate;
  readonly #stops: (() => void)[] = [];
  #events: WatchEvent[] = [];
  #eventsMax = Number.POSITIVE_INFINITY;
  #wake: () => void = () => undefined;
  #isEnded = false;
  #toldRevision = 0;

  constructor(deps: VerbDeps, resource: ApiResource, options: WatchOptions, matches: Predicate) {
    this.#deps = deps;
    this.#resource = resource;
    this.#options = options;
    this.#matches = matches;
  }

  start(signal: AbortSignal): void {
    const { store, clock } = this.#deps;
    const { sendInitialEvents, allowWatchBookmarks, timeoutSeconds } = this.#options;
    const from = startOf(this.#deps, this.#options);
    if (from === undefined) this.#tellAll(sendInitialEvents === true);
    else if (!this.#replay(from)) return;
    this.#eventsMax = this.#events.length + BUFFERED_EVENTS_MAX;
    this.#toldRevision = store.revision;
    this.#stops.push(store.subscribe((change) => this.#onChange(change)));
    if (allowWatchBookmarks === true) this.#every(clock, () => this.#bookmark());
    const lifeMs = (timeoutSeconds || TIMEOUT_SECONDS_DEFAULT) * 1000;
    const timer = clock.setTimer(() => this.#expire(), lifeMs);
    const onAbort = () => this.#abandon();
    signal.addEventListener('abort', onAbort, { once: true });
    this.#stops.push(
      () => timer.cancel(),
      () => signal.removeEventListener('abort', onAbort),
    );
    if (signal.aborted) this.#abandon();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent, void, undefined> {
    try {
      while (true) {
        const events = this.#events;
        this.#events = [];
        yield* events;
        if (this.#events.length > 0) continue;
        if (this.#isEnded) return;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      this.#abandon();
    }
  }

  #tellAll(isMarked: boolean): void {
    const { store } = this.#deps;
    for (const object of store.list(this.#resource.storage, this.#options.namespace)) {
      if (this.#matches(object)) this.#push('ADDED', shown(this.#resource, object));
    }
    this.#toldRevision = store.revision;
    if (isMarked) this.#bookmark({ [INITIAL_EVENTS_END]: 'true' });
  }

  /** False when the history does not reach back so far: the watch has ended with an error. */
  #replay(revision: number): boolean {
    const { store } = this.#deps;
    const changes = store.changesSince(revision);
    if (changes === undefined) {
      this.#fail(`too old resource version: ${revision} (${store.compactedRevision})`);
      return false;
    }
    for (const change of changes) this.#onChange(change);
    return true;
  }

  #onChange(change: Change): void {
    // A change whose delivery was queued before this watch began is part of its start.
    if (change.revision <= this.#toldRevision) return;
    this.#toldRevision = change.revision;
    if (change.ref.resource !== this.#resource.storage) return;
    const { namespace } = this.#options;
    if (namespace !== undefined && change.ref.namespace !== namespace) return;
    const type = transition(change, this.#matches);
    if (type === undefined) return;
    // A deleted or no longer selected object is told as it was, at the revision of the change.
    const isLast = type === 'DELETED' && change.type !== 'DELETED';
    const object = isLast && change.previous !== undefined ? change.previous : change.object;
    const told = withMetadata(object, { resourceVersion: String(change.revision) });
    this.#push(type, shown(this.#resource, told));
  }

  #push(type: WatchEvent['type'], object: JsonObject): void {
    if (this.#isEnded) return;
    if (this.#events.length >= this.#eventsMax && type !== 'ERROR') {
      this.#events = [];
      this.#fail('the watch was read too slowly, list again');
      return;
    }
    this.#events.push({ type, object });
    this.#wake();
  }

  #bookmark(annotations?: JsonObject): void {
    const apiVersion = apiVersionOf(this.#resource);
    const { kind } = this.#resource;
    const resourceVersion = String(this.#toldRevision);
    const metadata = { resourceVersion, ...(annotations !== undefined && { annotations }) };
    this.#push('BOOKMARK', { kind, apiVersion, metadata });
  }

  #fail(message: string): void {
    this.#push('ERROR', expired(message).status);
    this.#end();
  }

  #expire(): void {
    if (this.#options.allowWatchBookmarks === true) this.#bookmark();
    this.#end();
  }

  /** Nobody reads any more. */
  #abandon(): void {
    this.#events = [];
    this.#end();
  }

  #end(): void {
    this.#isEnded = true;
    for (const stop of this.#stops.splice(0)) stop();
    this.#wake();
  }

  #every(clock: Clock, act: () => void): void {
    const arm = () =>
      clock.setTimer(() => {
        act();
        timer = arm();
      }, BOOKMARK_MS);
    let timer = arm();
    this.#stops.push(() => timer.cancel());
  }
}

/** The revision to continue from; undefined to start with everything that is there. */
function startOf({ store }: VerbDeps, options: WatchOptions): number | undefined {
  const { resourceVersion = '', resourceVersionMatch = '', sendInitialEvents } = options;
  if (sendInitialEvents !== undefined && resourceVersionMatch !== 'NotOlderThan') {
    throw badRequest(
      'resourceVersionMatch: Forbidden: sendInitialEvents requires setting ' +
        'resourceVersionMatch to NotOlderThan',
    );
  }
  if (sendInitialEvents === undefined && resourceVersionMatch !== '') {
    throw badRequest(
      'resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless ' +
        'sendInitialEvents is provided',
    );
  }
  const asked = parseRevision(resourceVersion);
  if (asked > store.revision) throw resourceVersionTooLarge(asked, store.revision);
  if (sendInitialEvents === true) return undefined;
  if (sendInitialEvents === false && asked === 0) return store.revision;
  return asked === 0 ? undefined : asked;
}

/** What a change means to somebody who sees the selected objects only. */
function transition(change: Change, matches: Predicate): WatchEvent['type'] | undefined {
  const was = change.previous !== undefined && matches(change.previous);
  const is = change.type !== 'DELETED' && matches(change.object);
  if (was) return is ? 'MODIFIED' : 'DELETED';
  return is ? 'ADDED' : undefined;
}
