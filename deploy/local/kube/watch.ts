/**
 * List, then watch, for as long as `signal` lets it. Each call of `onChange` tells the present
 * state of one object, or that it is gone; a list after a break tells the gone ones as well.
 */
import type { Clock } from '#shared/clock.ts';
import { resourceVersionOf, stringAt, uidOf } from '../control-plane/api/object-meta.ts';
import { isJsonObject, type JsonObject, type JsonValue, objects } from '../control-plane/json.ts';
import { type KubeClient, KubeError } from './client.ts';

const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 5_000;
/** The server ends a watch after this time; a silent connection is given up a little later. */
const WATCH_SECONDS = 120;
const SILENCE_MS_MAX = (WATCH_SECONDS + 10) * 1000;
const LINE_BYTES_MAX = 4 * 1024 * 1024;

export interface WatchDeps {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export interface WatchTarget {
  /** Path of the collection. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** `object` is undefined when `uid` is gone. Must not throw and must not wait. */
  onChange(uid: string, object: JsonObject | undefined): void;
  /** Each failure, once it happened; the loop goes on. */
  onError?(error: unknown): void;
}

/** Runs until `signal` aborts; never rejects. */
export async function listAndWatch(deps: WatchDeps, target: WatchTarget): Promise<void> {
  const known = new Set<string>();
  let version: string | undefined;
  let backoffMs = BACKOFF_MS_MIN;
  while (!deps.signal.aborted) {
    try {
      version ??= await list(deps, target, known);
      for await (const event of watchEvents(deps, target, version)) {
        version = apply(event, target, known) ?? version;
        backoffMs = BACKOFF_MS_MIN;
      }
    } catch (error) {
      if (deps.signal.aborted) return;
      version = undefined;
      target.onError?.(error);
    }
    await deps.clock.sleep(backoffMs, deps.signal).catch(() => {});
    backoffMs = Math.min(backoffMs * 2, BACKOFF_MS_MAX);
  }
}

async function list(deps: WatchDeps, target: WatchTarget, known: Set<string>): Promise<string> {
  const answer = await deps.client.request({
    path: target.path,
    ...(target.query === undefined ? {} : { query: target.query }),
    signal: deps.signal,
  });
  const present = new Set<string>();
  for (const item of objects(answer['items'])) {
    const uid = uidOf(item);
    if (uid === '') continue;
    present.add(uid);
    known.add(uid);
    target.onChange(uid, item);
  }
  for (const uid of known) {
    if (present.has(uid)) continue;
    known.delete(uid);
    target.onChange(uid, undefined);
  }
  return resourceVersionOf(answer);
}

/** Applies one event; returns the resource version that it carries. */
function apply(event: JsonObject, target: WatchTarget, known: Set<string>): string | undefined {
  const object = event['object'];
  if (!isJsonObject(object)) return undefined;
  if (event['type'] === 'ERROR') {
    const code = typeof object['code'] === 'number' ? object['code'] : 0;
    throw new KubeError(code, stringAt(object, 'reason'), stringAt(object, 'message'));
  }
  const uid = uidOf(object);
  if (event['type'] === 'DELETED') {
    known.delete(uid);
    target.onChange(uid, undefined);
  } else if (event['type'] !== 'BOOKMARK') {
    known.add(uid);
    target.onChange(uid, object);
  }
  return resourceVersionOf(object) || undefined;
}

async function* watchEvents(
  { client, clock, signal }: WatchDeps,
  target: WatchTarget,
  version: string,
): AsyncGenerator<JsonObject> {
  const silence = new AbortController();
  const giveUp = () => silence.abort(new Error('the watch went silent'));
  let timer = clock.setTimer(giveUp, SILENCE_MS_MAX);
  try {
    const body = await client.stream({
      path: target.path,
      query: {
        ...target.query,
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: version,
        timeoutSeconds: String(WATCH_SECONDS),
      },
      signal: AbortSignal.any([signal, silence.signal]),
    });
    for await (const line of lines(body)) {
      timer.cancel();
      timer = clock.setTimer(giveUp, SILENCE_MS_MAX);
      const event: JsonValue = JSON.parse(line);
      if (isJsonObject(event)) yield event;
    }
  } finally {
    timer.cancel();
  }
}

async function* lines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    if (rest.length > LINE_BYTES_MAX) throw new Error('a watch event is too large');
    const parts = rest.split('\n');
    rest = parts.pop() ?? '';
    yield* parts.filter((part) => part.trim() !== '');
  }
}
