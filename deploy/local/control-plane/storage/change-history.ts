/** The last changes in order, bounded; what falls out at the front is compacted. */
import type { Change } from './object-store.ts';

/** Kept by the object store alone, which numbers the changes. */
export class ChangeHistory {
  readonly #max: number;
  #changes: Change[] = [];
  #compactedRevision: number;

  /** Starts empty: nothing before `revision` can be told. */
  constructor(revision: number, max: number) {
    this.#compactedRevision = revision;
    this.#max = max;
  }

  /** The earliest revision from which `since` still knows every change. */
  get compactedRevision(): number {
    return this.#compactedRevision;
  }

  append(change: Change): void {
    this.#changes.push(change);
    // Dropping in halves keeps appending cheap.
    if (this.#changes.length > this.#max) this.#drop(Math.ceil(this.#max / 2));
  }

  /** Changes after `revision`, oldest first; undefined when some of them are gone. */
  since(revision: number): readonly Change[] | undefined {
    if (revision < this.#compactedRevision) return undefined;
    return this.#changes.slice(this.#firstAfter(revision));
  }

  /** Forgets every change up to and including `revision`. */
  compact(revision: number): void {
    this.#drop(this.#firstAfter(revision));
    this.#compactedRevision = Math.max(this.#compactedRevision, revision);
  }

  #drop(count: number): void {
    const last = this.#changes[count - 1];
    if (last === undefined) return;
    this.#changes = this.#changes.slice(count);
    this.#compactedRevision = last.revision;
  }

  /** Index of the first change with a higher revision (binary search: revisions ascend). */
  #firstAfter(revision: number): number {
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const change = this.#changes[middle];
      if (change !== undefined && change.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
