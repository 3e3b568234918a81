/** Chance that can be had again: the same seed gives the same numbers in the same order. */
import { randomInt } from 'node:crypto';
import type { Random } from '#shared/clock.ts';

export const SEED_MAX = 2 ** 31;

export function newSeed(): number {
  return randomInt(SEED_MAX);
}

/** Mulberry32: small, and good enough to choose with. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from `min` to `max`, both included. */
export function between(random: Random, min: number, max: number): number {
  return min + Math.floor(random() * (max - min + 1));
}

/** One of them; undefined when there are none. */
export function pick<T>(random: Random, of: readonly T[]): T | undefined {
  return of[Math.floor(random() * of.length)];
}

/** All of them, in another order. */
export function shuffled<T>(random: Random, of: readonly T[]): T[] {
  const keyed = of.map((one) => ({ one, key: random() }));
  return keyed.sort((a, b) => a.key - b.key).map(({ one }) => one);
}
