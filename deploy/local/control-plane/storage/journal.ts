/** What the object store needs of durable storage: the present objects and the last revision. */
import type { JsonObject } from '../json.ts';
import type { ObjectRef } from './object-store.ts';

export interface Journal {
  load(): Iterable<{ readonly ref: ObjectRef; readonly object: JsonObject }>;
  /** The number of the last write; never lower than it was before. */
  revision(): number;
  /** Durable when it returns. */
  put(ref: ObjectRef, object: JsonObject, revision: number): void;
  remove(ref: ObjectRef, revision: number): void;
  close(): void;
}
