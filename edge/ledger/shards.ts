/**
 * How the fleet is divided among the shards. A proxy belongs to the shard that its UID hashes to,
 * which never changes while the number of shards stays; when that number changes, rendezvous
 * hashing moves the fewest proxies. A lease's id names its shard, so that it is found whatever the number
 * of shards has become since.
 */

/** Shards that a fleet can be divided into. */
export const SHARDS_MAX = 64;

/** The shard that owns a proxy: 0 to `shards - 1`. */
export function shardOfProxy(cluster: string, uid: string, shards: number): number {
  return pick(`${cluster}/${uid}`, shards);
}

/** The shard that is asked first for what carries this key: 0 to `shards - 1`. */
export function shardOfKey(key: string, shards: number): number {
  return pick(key, shards);
}

/** The shard that a lease's id names; undefined for what is no id of ours. */
export function shardOfLease(leaseID: string): number | undefined {
  const [, digits] = /^(\d{1,2})\./.exec(leaseID) ?? [];
  // Ids without a prefix are from before there were several shards.
  if (digits === undefined) return /^[\w-]+$/.test(leaseID) ? 0 : undefined;
  const shard = Number(digits);
  return shard < SHARDS_MAX ? shard : undefined;
}

/** A shard's share of a whole number: the shares of all shards add up to it. */
export function wholeShare(total: number, shard: number, shards: number): number {
  return Math.floor(total / shards) + (shard < total % shards ? 1 : 0);
}

/** The shard whose mix with the key is highest (rendezvous hashing). */
function pick(key: string, shards: number): number {
  const h = hash(key);
  let best = 0;
  let highest = -1;
  for (let shard = 0; shard < shards; shard++) {
    const weight = mix(h ^ Math.imul(shard + 1, 0x9e3779b1));
    if (weight > highest) [best, highest] = [shard, weight];
  }
  return best;
}

/** FNV-1a over UTF-16 code units. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h;
}

/** The finishing mix of MurmurHash3: every bit of the input changes half of the output. */
function mix(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
