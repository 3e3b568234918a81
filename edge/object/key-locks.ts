/**
 * Who may decide about an idempotency key while several shards are asked. The shard that the key
 * hashes to keeps a lock for it from the moment that a request went on to other shards until that
 * request has its answer: another request with the key waits so long, and then finds the lease of
 * the first, or none. In memory only: a lock that is lost with the object lets two requests of that
 * very moment through, and no others.
 */
import type { Clock, Timer } from '#shared/clock.ts';

interface Lock {
  readonly owner: string;
  readonly over: PromiseWithResolvers<void>;
  readonly timer: Timer;
}

export class KeyLocks {
  readonly #clock: Clock;
  readonly #locks = new Map<string, Lock>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves when `owner` has the lock, after all those who had it before. It ends with `release`,
   * or by itself when its owner has not been heard of for `holdMs`.
   */
  async take(key: string, owner: string, holdMs: number): Promise<void> {
    for (let lock = this.#locks.get(key); lock !== undefined; lock = this.#locks.get(key)) {
      // The same request again, whose first answer was lost.
      if (lock.owner === owner) return;
      await lock.over.promise;
    }
    const timer = this.#clock.setTimer(() => this.release(key, owner), holdMs);
    this.#locks.set(key, { owner, over: Promise.withResolvers(), timer });
  }

  /** Ends the lock, if the owner still has it. */
  release(key: string, owner: string): void {
    const lock = this.#locks.get(key);
    if (lock?.owner !== owner) return;
    this.#locks.delete(key);
    lock.timer.cancel();
    lock.over.resolve();
  }
}
