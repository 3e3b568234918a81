/** What the clients of a run tell each other: leases that others use, too, living or over. */
import type { Random } from '#shared/clock.ts';
import { pick } from '#test/integration/seed.ts';

/** Leases that several clients use at the same time. */
const SHARED_MAX = 16;
/** Released ones that are still asked for. */
const RELEASED_MAX = 100;
/** Leases that are left to expire, as many as do so in some seconds. */
const LEFT_MAX = 60;

/** Leases that all clients know of. */
export class Common {
  readonly #shared: string[] = [];
  readonly #released: string[] = [];
  readonly #left: string[] = [];

  /** Lets others use a lease, too. */
  share(leaseID: string): void {
    push(this.#shared, leaseID, SHARED_MAX);
  }

  /** Its client is about to release it. */
  release(leaseID: string): void {
    push(this.#released, leaseID, RELEASED_MAX);
  }

  /** Its client lets it expire. */
  leave(leaseID: string): void {
    push(this.#left, leaseID, LEFT_MAX);
  }

  any(random: Random): string | undefined {
    const from = pick(random, [this.#shared, this.#released, this.#left]);
    return from === undefined ? undefined : pick(random, from);
  }
}

/** Adds to a list of limited length; the oldest goes. */
export function push<T>(list: T[], item: T, lengthMax: number): void {
  list.push(item);
  if (list.length > lengthMax) list.shift();
}
