/**
 * All objects of the control plane and the order in which they changed.
 *
 * Objects live in memory, frozen, and every write goes through the journal first, so that what was
 * answered survives a crash. One counter numbers all writes; it is the `resourceVersion`. A bounded
 * history of changes serves watches and consistent pages; older revisions are "compacted".
 */
import { type JsonObject, objectOf } from '../json.ts';
import { ChangeHistory } from './change-history.ts';
import type { Journal } from './journal.ts';

/** Where an object is stored; `namespace` is empty for cluster-scoped ones. */
export interface ObjectRef {
  /** Storage name of the resource, such as `proxies.crawl.example.com`. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly revision: number;
  readonly ref: ObjectRef;
  /** The object after the change; for DELETED its last state, stamped with the deletion. */
  readonly object: JsonObject;
  readonly previous?: JsonObject;
}

export type ChangeListener = (change: Change) => void;

export interface ObjectStoreOptions {
  /** Absent: in memory only. */
  readonly journal?: Journal;
  /** Changes kept for watches and pages. */
  readonly historyMax?: number;
}

const HISTORY_MAX = 10_000;

interface Entry {
  readonly ref: ObjectRef;
  readonly object: JsonObject;
}

/** Writes are synchronous: whoever reads after a write sees it. */
export class ObjectStore {
  readonly #journal: Journal | undefined;
  readonly #objects = new Map<string, Map<string, Entry>>();
  readonly #history: ChangeHistory;
  readonly #listeners = new Set<ChangeListener>();
  readonly #undelivered: Change[] = [];
  #delivering = false;
  #revision = 0;

  constructor(options: ObjectStoreOptions = {}) {
    this.#journal = options.journal;
    for (const { ref, object } of this.#journal?.load() ?? []) {
      this.#table(ref.resource).set(entryKey(ref), { ref, object: deepFreeze(object) });
    }
    this.#revision = this.#journal?.revision() ?? 0;
    this.#history = new ChangeHistory(this.#revision, options.historyMax ?? HISTORY_MAX);
  }

  /** The number of the last write. */
  get revision(): number {
    return this.#revision;
  }

  /** Watches and pages can start here or later, not earlier. */
  get compactedRevision(): number {
    return this.#history.compactedRevision;
  }

  get(ref: ObjectRef): JsonObject | undefined {
    return this.#objects.get(ref.resource)?.get(entryKey(ref))?.object;
  }

  /** Objects of a resource in key order, of one namespace or of all. */
  list(resource: string, namespace?: string): JsonObject[] {
    return this.#sorted(this.#objects.get(resource) ?? new Map(), namespace);
  }

  /** The same as it was after the write `revision`; undefined when that is compacted. */
  listAt(
    resource: string,
    namespace: string | undefined,
    revision: number,
  ): JsonObject[] | undefined {
    if (revision === this.#revision) return this.list(resource, namespace);
    const later = this.#history.since(revision);
    if (later === undefined) return undefined;
    const entries = new Map(this.#objects.get(resource));
    for (const change of later.toReversed()) {
      if (change.ref.resource !== resource) continue;
      const { ref, previous } = change;
      if (previous === undefined) entries.delete(entryKey(ref));
      else entries.set(entryKey(ref), { ref, object: previous });
    }
    return this.#sorted(entries, namespace);
  }

  /** How many objects are stored under `resource`, in one namespace or in all. */
  count(resource: string, namespace?: string): number {
    const entries = this.#objects.get(resource);
    if (entries === undefined) return 0;
    if (namespace === undefined) return entries.size;
    return [...entries.values()].filter(({ ref }) => ref.namespace === namespace).length;
  }

  /** Storage names that hold at least one object. */
  resources(): string[] {
    return [...this.#objects].filter(([, entries]) => entries.size > 0).map(([name]) => name);
  }

  /** Creates or replaces; returns the stored object with its new `resourceVersion`. */
  put(ref: ObjectRef, object: JsonObject): JsonObject {
    const revision = this.#revision + 1;
    const stored = deepFreeze(stamp(object, revision));
    const previous = this.get(ref);
    this.#journal?.put(ref, stored, revision);
    this.#revision = revision;
    this.#table(ref.resource).set(entryKey(ref), { ref, object: stored });
    this.#record(
      previous === undefined
        ? { type: 'ADDED', revision, ref, object: stored }
        : { type: 'MODIFIED', revision, ref, object: stored, previous },
    );
    return stored;
  }

  /** Removes an object that exists; returns its last state, stamped with the deletion. */
  remove(ref: ObjectRef): JsonObject {
    const previous = this.get(ref);
    if (previous === undefined) throw new Error(`${ref.resource} ${ref.name} is not stored`);
    const revision = this.#revision + 1;
    const last = deepFreeze(stamp(previous, revision));
    this.#journal?.remove(ref, revision);
    this.#revision = revision;
    this.#table(ref.resource).delete(entryKey(ref));
    this.#record({ type: 'DELETED', revision, ref, object: last, previous });
    return last;
  }

  /** Changes after `revision`, oldest first; undefined when some of them are compacted. */
  changesSince(revision: number): readonly Change[] | undefined {
    return this.#history.since(revision);
  }

  /** Calls `listener` with every later change, in order; returns how to stop. */
  subscribe(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Forgets the history up to now, as etcd's periodic compaction does. */
  compact(): void {
    this.#history.compact(this.#revision);
  }

  close(): void {
    this.#listeners.clear();
    this.#journal?.close();
  }

  /**
   * A listener may write: its change waits until every listener has seen the present one. One that
   * fails keeps the others from nothing, or watches would have a gap; the writer gets its error.
   */
  #record(change: Change): void {
    this.#history.append(change);
    this.#undelivered.push(change);
    if (this.#delivering) return;
    this.#delivering = true;
    const failures: unknown[] = [];
    for (let next = this.#undelivered.shift(); next; next = this.#undelivered.shift()) {
      for (const listener of [...this.#listeners]) {
        try {
          listener(next);
        } catch (error) {
          failures.push(error);
        }
      }
    }
    this.#delivering = false;
    if (failures.length > 0) throw failures[0];
  }

  #table(resource: string): Map<string, Entry> {
    let entries = this.#objects.get(resource);
    if (entries === undefined) {
      entries = new Map();
      this.#objects.set(resource, entries);
    }
    return entries;
  }

  #sorted(entries: ReadonlyMap<string, Entry>, namespace: string | undefined): JsonObject[] {
    return [...entries]
      .filter(([, { ref }]) => namespace === undefined || ref.namespace === namespace)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { object }]) => object);
  }
}

/** Key order is that of etcd: namespace, then name. */
export function entryKey(ref: { readonly namespace: string; readonly name: string }): string {
  return `${ref.namespace}/${ref.name}`;
}

function stamp(object: JsonObject, revision: number): JsonObject {
  return {
    ...object,
    metadata: { ...objectOf(object.metadata), resourceVersion: String(revision) },
  };
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
