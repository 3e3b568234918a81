/** Messages in pieces: whatever the cuts, the same messages; whatever the bytes, a clear error. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  encodeHead,
  type Header,
  MESSAGE_BYTES_MAX,
  type Message,
  MessageReader,
} from '#agent/providers/kvm/libvirt/wire.ts';

const HEADER: Header = {
  program: 0x2000_8086,
  version: 1,
  procedure: 59,
  type: 1,
  serial: 7,
  status: 0,
};

function encode({ header, body }: Message): Buffer {
  return Buffer.concat([encodeHead(header, body.length), body]);
}

function read(...pieces: Uint8Array[]): Message[] {
  const reader = new MessageReader();
  return pieces.flatMap((piece) => [...reader.push(piece)]);
}

const plain = (messages: readonly Message[]) =>
  messages.map(({ header, body }) => ({ header, body: Buffer.from(body).toString('hex') }));

it('writes a head as libvirt does', () => {
  expect(Buffer.from(encodeHead(HEADER, 4)).toString('hex')).toBe(
    '00000020' + '20008086' + '00000001' + '0000003b' + '00000001' + '00000007' + '00000000',
  );
});

it('cut at every byte, two messages are the same two', () => {
  const messages = [
    { header: HEADER, body: Buffer.from('abcd') },
    { header: { ...HEADER, serial: 8, status: 1 }, body: Buffer.alloc(0) },
  ];
  const bytes = Buffer.concat(messages.map(encode));
  for (let cut = 0; cut <= bytes.length; cut++) {
    expect(plain(read(bytes.subarray(0, cut), bytes.subarray(cut)))).toEqual(plain(messages));
  }
  const single = [...bytes].map((byte) => Uint8Array.of(byte));
  expect(plain(read(...single))).toEqual(plain(messages));
});

it('in pieces of any size, any messages come out as they went in', () => {
  const uint = fc.nat({ max: 0xffff_ffff });
  const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
  const header = fc.record({
    program: uint,
    version: uint,
    procedure: int,
    type: int,
    serial: uint,
    status: int,
  });
  const message = fc.record({ header, body: fc.uint8Array({ maxLength: 300 }) });
  fc.assert(
    fc.property(
      fc.array(message, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 97 }), { minLength: 1 }),
      (messages, sizes) => {
        const bytes = Buffer.concat(messages.map(encode));
        const pieces: Uint8Array[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn++) {
          const piece = bytes.subarray(at, at + (sizes[turn % sizes.length] ?? 1));
          pieces.push(piece);
          at += piece.length;
        }
        expect(plain(read(...pieces))).toEqual(plain(messages));
      },
    ),
  );
});

it.each([
  ['shorter than a header', 27],
  ['zero', 0],
  ['longer than any message', MESSAGE_BYTES_MAX + 1],
  ['the start of an HTTP answer', Buffer.from('HTTP').readUInt32BE(0)],
])('a length that is %s is refused as soon as it is there', (_name, length) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(length);
  expect(() => read(bytes)).toThrow(`this is not libvirt: a message of ${length} bytes`);
});

it('a long message in small pieces is put together once', () => {
  const body = Buffer.alloc(4_000_000, 'x');
  const bytes = encode({ header: HEADER, body });
  const pieces = Array.from({ length: Math.ceil(bytes.length / 1000) }, (_, index) =>
    bytes.subarray(index * 1000, (index + 1) * 1000),
  );
  expect(read(...pieces).map((message) => message.body.length)).toEqual([body.length]);
});
