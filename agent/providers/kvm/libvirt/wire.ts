/** Messages on the wire: a length, a header of six numbers, a body. Pure. */
import { XdrError } from '@stellar/js-xdr';
import { LibvirtConnectionError } from './errors.ts';
import { int32, struct, uint32 } from './xdr.ts';

export const PROGRAM = { remote: 0x2000_8086, keepalive: 0x6b65_6570 } as const;
export const PROTOCOL_VERSION = 1;
export const TYPE = { call: 0, reply: 1, message: 2, stream: 3 } as const;
export const STATUS = { ok: 0, error: 1, continue: 2 } as const;
/** Procedures of the keepalive program. */
export const KEEPALIVE = { ping: 1, pong: 2 } as const;

const LENGTH_BYTES = 4;
const HEADER_BYTES = 24;
const MESSAGE_BYTES_MIN = LENGTH_BYTES + HEADER_BYTES;
/** Largest message that libvirt of any version sends, its length included. */
export const MESSAGE_BYTES_MAX = 33_554_432 + LENGTH_BYTES;
/** Most data in one message of a stream that libvirt of any version takes. */
export const STREAM_CHUNK_BYTES_MAX = 262_120;

export interface Header {
  readonly program: number;
  readonly version: number;
  readonly procedure: number;
  readonly type: number;
  readonly serial: number;
  readonly status: number;
}

export interface Message {
  readonly header: Header;
  readonly body: Uint8Array;
}

const headerType = struct('header', {
  program: uint32(),
  version: uint32(),
  procedure: int32(),
  type: int32(),
  serial: uint32(),
  status: int32(),
});
const length = uint32();

/** Length and header of a message whose body has `bodyBytes`; the body is written after it. */
export function encodeHead(header: Header, bodyBytes: number): Uint8Array {
  const total = MESSAGE_BYTES_MIN + bodyBytes;
  if (total > MESSAGE_BYTES_MAX) throw new RangeError(`a message of ${total} bytes is too long`);
  return Buffer.concat([length.encode(total), headerType.encode(header)]);
}

/** Cuts what a stream brings, in pieces of any size, into messages. */
export class MessageReader {
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  /** Length of the message that is coming, once four bytes of it are here. */
  #expected: number | undefined;

  /** Messages that `piece` completes. Throws a `protocol` error on a length that cannot be. */
  *push(piece: Uint8Array): Generator<Message> {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    while (this.#bytes >= (this.#expected ?? LENGTH_BYTES)) {
      const joined = this.#join();
      this.#expected ??= checkedLength(joined);
      if (joined.length < this.#expected) continue;
      const message = joined.subarray(0, this.#expected);
      this.#pieces = [joined.subarray(this.#expected)];
      this.#bytes = joined.length - this.#expected;
      this.#expected = undefined;
      yield {
        header: headerType.decode(message.subarray(LENGTH_BYTES, MESSAGE_BYTES_MIN)),
        body: message.subarray(MESSAGE_BYTES_MIN),
      };
    }
  }

  #join(): Uint8Array {
    const [first] = this.#pieces;
    if (this.#pieces.length === 1 && first !== undefined) return first;
    const joined = Buffer.concat(this.#pieces, this.#bytes);
    this.#pieces = [joined];
    return joined;
  }
}

function checkedLength(bytes: Uint8Array): number {
  const total = length.decode(bytes.subarray(0, LENGTH_BYTES));
  if (total >= MESSAGE_BYTES_MIN && total <= MESSAGE_BYTES_MAX) return total;
  throw new LibvirtConnectionError('protocol', `this is not libvirt: a message of ${total} bytes`);
}

/** Runs `decode`, whose failure means that the other side does not speak the protocol. */
export function decoding<T>(what: string, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof XdrError)) throw error;
    const message = `this is not libvirt: ${what} cannot be read (${error.message})`;
    throw new LibvirtConnectionError('protocol', message, { cause: error });
  }
}
