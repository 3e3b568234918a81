/** The head of a qcow2 image, as its specification in QEMU's documentation says. Pure. */

const MAGIC = 0x5146_49fb;
/** Bytes of an image that `readQcow2` needs. */
export const QCOW2_HEAD_BYTES = 80;
/** Bit of the incompatible features: the data is in another file. */
const EXTERNAL_DATA = 1n << 2n;
const VERSION_WITH_FEATURES = 3;

/**
 * Size of the disk in bytes, or why the image cannot be a base. One that names further files would
 * have the host open whatever path it names.
 */
export function readQcow2(head: Buffer): { virtualBytes: number } | { problem: string } {
  if (head.length < QCOW2_HEAD_BYTES || head.readUInt32BE(0) !== MAGIC) {
    return { problem: 'it is no qcow2 image' };
  }
  const version = head.readUInt32BE(4);
  if (head.readBigUInt64BE(8) !== 0n) return { problem: 'it is backed by another file' };
  if (head.readUInt32BE(32) !== 0) return { problem: 'it is encrypted' };
  if (version >= VERSION_WITH_FEATURES && (head.readBigUInt64BE(72) & EXTERNAL_DATA) !== 0n) {
    return { problem: 'it keeps its data in another file' };
  }
  return { virtualBytes: Number(head.readBigUInt64BE(24)) };
}
