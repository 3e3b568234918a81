/**
 * Writes of requests that arrive together, in one transaction. A request has changed the book
 * already when it comes here, and is answered when the transaction that holds its rows is done.
 * Fifteen requests share a transaction under load; alone, a request waits for one turn of the
 * event loop.
 */
import type { Change } from '#edge/ledger/model.ts';
import type { Clock, Timer } from '#shared/clock.ts';

export interface GroupCommitDeps {
  readonly clock: Clock;
  /** Writes all of them or none, or throws. */
  readonly write: (changes: readonly Change[]) => void;
  /** The rows of a batch could not be written: the book is ahead of storage. */
  readonly rollBack: () => void;
  /** All of these are written. */
  readonly written: (changes: readonly Change[]) => void;
}

interface Batch {
  readonly changes: Change[];
  readonly timer: Timer;
  readonly done: PromiseWithResolvers<void>;
}

export class GroupCommit {
  readonly #deps: GroupCommitDeps;
  #open: Batch | undefined;

  constructor(deps: GroupCommitDeps) {
    this.#deps = deps;
  }

  /** Resolves when the changes, and all that came before them, are written; else rejects. */
  add(changes: readonly Change[]): Promise<void> {
    if (changes.length === 0) return this.settled();
    this.#open ??= {
      changes: [],
      timer: this.#deps.clock.setTimer(() => this.flush(), 0),
      done: Promise.withResolvers(),
    };
    this.#open.changes.push(...changes);
    return this.#open.done.promise;
  }

  /** Resolves when what the book says now is written; whoever only looks must wait for that too. */
  settled(): Promise<void> {
    return this.#open?.done.promise ?? Promise.resolve();
  }

  /** Writes at once what waits to be written. */
  flush(): void {
    const batch = this.#open;
    if (batch === undefined) return;
    this.#open = undefined;
    batch.timer.cancel();
    try {
      this.#deps.write(batch.changes);
    } catch (error) {
      this.#deps.rollBack();
      batch.done.reject(error);
      return;
    }
    this.#deps.written(batch.changes);
    batch.done.resolve();
  }
}
