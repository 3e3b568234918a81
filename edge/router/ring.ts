/** All shards, once, in the order of their numbers from `start` on. */
export function ringFrom(start: number, shards: number): number[] {
  return Array.from({ length: shards }, (_, step) => (start + step) % shards);
}
