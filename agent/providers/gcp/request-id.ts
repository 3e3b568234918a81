/**
 * Ids of requests: Compute Engine answers a repeated one with the operation of the first, for about
 * an hour, and does nothing again.
 */
import { createHash } from 'node:crypto';

/**
 * A UUID that follows from all that a creation is: the same for a repeat, another one after an edit
 * (`generation`) and for each further machine of the same generation (`attempt`).
 */
export function requestIdOf(of: {
  readonly uid: string;
  readonly installation: string;
  readonly zone: string;
  readonly generation: number;
  readonly attempt: number;
}): string {
  const { uid, installation, zone, generation, attempt } = of;
  const name = JSON.stringify([installation, uid, zone, generation, attempt]);
  const bytes = createHash('sha256').update(name).digest().subarray(0, 16);
  // Version 8 (a scheme of one's own) and the variant of RFC 9562.
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
  return [...parts, hex.slice(20)].join('-');
}
