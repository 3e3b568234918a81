/** Names of instances: derived from the Proxy's UID, so that a repeated create finds its machine. */
import { createHash } from 'node:crypto';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567';
const PREFIX = 'proxy-';
/** 80 bits: no birthday collisions at any fleet size that one cluster holds. */
const HASH_CHARACTERS = 16;
const BITS_PER_CHARACTER = 5;

/**
 * `proxy-` and 16 characters of base32 of SHA-256 of `uid`: 22 characters that are valid as a pod,
 * a Compute Engine and a libvirt domain name. The same for the whole life of a Proxy, so a
 * replacement has the name of what it replaces.
 */
export function instanceName(uid: string): string {
  const digest = createHash('sha256').update(uid).digest();
  let name = PREFIX;
  let bits = 0;
  let value = 0;
  for (const byte of digest) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= BITS_PER_CHARACTER) {
      bits -= BITS_PER_CHARACTER;
      name += ALPHABET[(value >>> bits) & 31];
      if (name.length === PREFIX.length + HASH_CHARACTERS) return name;
    }
    value &= (1 << bits) - 1;
  }
  return name;
}
