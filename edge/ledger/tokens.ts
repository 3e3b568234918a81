/**
 * Fencing tokens. A token is made of the time, so that those of several shards grow together, and
 * is always above the last one, so that those of one shard grow whatever its clock does. The shard
 * is in the lowest bits: no two shards ever give the same token.
 */
import { SHARDS_MAX } from './shards.ts';

/** Tokens of one shard in a millisecond, before they run ahead of the clock (which is harmless). */
const TOKENS_PER_MS = 16;

/** The token after `last`. Stays within the safe integers until the year 2248. */
export function nextToken(last: number, nowMs: number, shard: number): number {
  const timely = nowMs * TOKENS_PER_MS * SHARDS_MAX + shard;
  if (timely > last) return timely;
  const above = last + 1;
  return above + ((((shard - above) % SHARDS_MAX) + SHARDS_MAX) % SHARDS_MAX);
}
