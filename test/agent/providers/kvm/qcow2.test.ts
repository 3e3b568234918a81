import { expect, test } from 'vitest';
import { QCOW2_HEAD_BYTES, readQcow2 } from '#agent/providers/kvm/qcow2.ts';
import { qcow2Head } from './block.ts';

function changed(change: (head: Buffer) => void): Buffer {
  const head = qcow2Head(10 * 1024 ** 3);
  change(head);
  return head;
}

test('an image tells the size of its disk', () => {
  expect(readQcow2(qcow2Head(10 * 1024 ** 3))).toEqual({ virtualBytes: 10 * 1024 ** 3 });
});

test.each<[string, Buffer, string]>([
  ['text', Buffer.from('<html>'.repeat(20)), 'no qcow2 image'],
  ['nothing', Buffer.alloc(0), 'no qcow2 image'],
  ['half a head', qcow2Head(1).subarray(0, QCOW2_HEAD_BYTES - 1), 'no qcow2 image'],
  ['an image that needs another', changed((head) => head.writeBigUInt64BE(512n, 8)), 'backed by'],
  ['an encrypted image', changed((head) => head.writeUInt32BE(1, 32)), 'encrypted'],
  ['an image without its data', changed((head) => head.writeBigUInt64BE(4n, 72)), 'another file'],
])('%s is refused', (_what, head, problem) => {
  expect(readQcow2(head)).toEqual({ problem: expect.stringContaining(problem) });
});

test('what version 2 has in the place of features is none', () => {
  const head = changed((bytes) => {
    bytes.writeUInt32BE(2, 4);
    bytes.writeBigUInt64BE(0xffff_ffffn, 72);
  });
  expect(readQcow2(head)).toHaveProperty('virtualBytes');
});
