/**
 * The objects of one informer by `namespace/name`, and the rule which of two versions of an object
 * stays: never the older one, as far as resource versions can be compared. Every method that
 * changes something gives the keys that changed.
 */
import { objectKey } from '#shared/crd/object-meta.ts';

/** What the cache must know of an object. */
export interface Cacheable {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
  };
}

export interface ObjectCache<T extends Cacheable> {
  get(key: string): T | undefined;
  list(): Iterable<T>;
  readonly size: number;
  /** A version from the watch; an older one than the cached, or the same again, is ignored. */
  upsert(object: T): string[];
  remove(key: string): string[];
  /**
   * A version that a write returned. It only ever replaces an older one of the same object: an
   * object that is no longer here was deleted meanwhile and must not come back to life.
   */
  observe(object: T): string[];
  /** Starts remembering what is observed, since a list may have been read before the write. */
  beginList(): void;
  /** Takes the list as the truth. `kept` are keys that it holds but nobody could parse. */
  replaceAll(objects: readonly T[], kept: ReadonlySet<string>): string[];
}

export function createObjectCache<T extends Cacheable>(): ObjectCache<T> {
  let objects = new Map<string, T>();
  let observedDuringList = new Map<string, T>();

  function upsert(object: T): string[] {
    const key = objectKey(object.metadata);
    const cached = objects.get(key);
    if (isOlder(object, cached)) return [];
    objects.set(key, object);
    return isSame(object, cached) ? [] : [key];
  }

  function observe(object: T): string[] {
    const key = objectKey(object.metadata);
    observedDuringList.set(key, object);
    const cached = objects.get(key);
    if (cached === undefined || cached.metadata.uid !== object.metadata.uid) return [];
    return isNewer(object, cached) ? upsert(object) : [];
  }

  return {
    get: (key) => objects.get(key),
    list: () => objects.values(),
    get size() {
      return objects.size;
    },
    upsert,
    observe,
    remove(key) {
      return objects.delete(key) ? [key] : [];
    },
    beginList() {
      observedDuringList = new Map();
    },
    replaceAll(listed, kept) {
      const before = objects;
      objects = new Map(listed.map((object) => [objectKey(object.metadata), object]));
      for (const key of kept) {
        const old = before.get(key);
        if (old !== undefined) objects.set(key, old);
      }
      for (const object of observedDuringList.values()) observe(object);
      observedDuringList = new Map();
      return changedKeys(before, objects);
    },
  };
}

function changedKeys<T extends Cacheable>(
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
): string[] {
  const changed: string[] = [];
  for (const [key, object] of after) {
    if (!isSame(object, before.get(key))) changed.push(key);
  }
  for (const key of before.keys()) if (!after.has(key)) changed.push(key);
  return changed;
}

function isSame(object: Cacheable, cached: Cacheable | undefined): boolean {
  return (
    cached?.metadata.resourceVersion === object.metadata.resourceVersion &&
    cached.metadata.uid === object.metadata.uid
  );
}

/** Older version of the same object; a new object under the old name is never older. */
function isOlder(object: Cacheable, cached: Cacheable | undefined): boolean {
  return (
    cached !== undefined &&
    cached.metadata.uid === object.metadata.uid &&
    compareVersions(object, cached) < 0
  );
}

function isNewer(object: Cacheable, cached: Cacheable): boolean {
  return compareVersions(object, cached) > 0;
}

/**
 * Resource versions are opaque by the API's contract, but every server in use writes the integer
 * of its store; anything else compares as equal, so that the last one seen stays.
 */
function compareVersions(a: Cacheable, b: Cacheable): number {
  const left = a.metadata.resourceVersion;
  const right = b.metadata.resourceVersion;
  if (!INTEGER.test(left) || !INTEGER.test(right)) return 0;
  if (left.length !== right.length) return left.length - right.length;
  return left < right ? -1 : left > right ? 1 : 0;
}

const INTEGER = /^(0|[1-9]\d*)$/;
