/** A history made by hand, and what is to be found in it. */
import type { Rule } from '../check/violation.ts';
import { Hand } from '../hand.ts';
import type { History } from '../history.ts';

export interface Case {
  readonly name: string;
  readonly hand: Hand;
  /** Rules that are broken; none for a history that may be right. */
  readonly broken: readonly Rule[];
}

/** Begins a history with a fleet: the proxy `a`, with one lease at most, or what is said. */
export function fleet(
  entries: Parameters<Hand['sync']>[1] = { a: {} },
  settings: Partial<History> = {},
): Hand {
  return new Hand(settings).sync([0, 10], entries);
}

export const ONE = { id: 'one', token: 1, uid: 'a', untilMs: 2_000 };
export const TWO = { id: 'two', token: 2, uid: 'a', untilMs: 2_000 };

/** Begins with the lease `one` of that proxy, for two seconds less a little. */
export function one(): Hand {
  return fleet().grant([20, 30], ONE);
}
