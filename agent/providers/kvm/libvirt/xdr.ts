/**
 * XDR types (RFC 4506) that the protocol is written in, on top of `@stellar/js-xdr`. Values are
 * plain: text is a string, a size a number, a UUID its usual writing.
 */
import {
  array,
  BaseType,
  fixedArray,
  int32,
  opaque,
  option,
  type Reader,
  string,
  struct,
  uint32,
  uint64,
  voidType,
  type Writer,
  type XdrType,
} from '@stellar/js-xdr';

export type { Infer, XdrType } from '@stellar/js-xdr';
export { array, int32, option, struct, uint32 };

/** Longest text that libvirt sends or takes, in bytes (`REMOTE_STRING_MAX`). */
export const TEXT_BYTES_MAX = 4_194_304;

const UUID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A type that shows the values of another one in a different shape. */
class Mapped<Wire, Value> extends BaseType<Value> {
  readonly kind: string;
  readonly #wire: XdrType<Wire>;
  readonly #decode: (wire: Wire) => Value;
  readonly #encode: (value: Value) => Wire;

  constructor(
    kind: string,
    wire: XdrType<Wire>,
    decode: (wire: Wire) => Value,
    encode: (value: Value) => Wire,
  ) {
    super();
    this.kind = kind;
    this.#wire = wire;
    this.#decode = decode;
    this.#encode = encode;
  }

  override _read(reader: Reader, path: string): Value {
    return this.#decode(this.#wire._read(reader, path));
  }

  override _write(value: Value, writer: Writer, path: string): void {
    this.#wire._write(this.#encode(value), writer, path);
  }
}

const encoder = new TextEncoder();
/** What a host calls its things need not be UTF-8; a wrong letter must not fail a list. */
const decoder = new TextDecoder();

/** Text that is always there (`remote_nonnull_string`). */
export const text: XdrType<string> = new Mapped(
  'text',
  string(TEXT_BYTES_MAX),
  (bytes) => decoder.decode(bytes),
  (value: string) => encoder.encode(value),
);

/** Text or null (`remote_string`). */
export const nullableText: XdrType<string | null> = option(text);

/** A number of bytes or the like: `unsigned hyper`, exact up to 2^53 (8 PiB). */
export const size: XdrType<number> = new Mapped('size', uint64(), Number, (value: number) =>
  BigInt(value),
);

/** A UUID in its usual writing, such as `f3b5…-…`; 16 bytes on the wire. */
export const uuid: XdrType<string> = new Mapped('uuid', opaque(16), uuidOf, bytesOf);

/** No value: arguments or result of a procedure that has none. */
export const nothing: XdrType<void> = voidType();

/** A text in an array of fixed length in which each character takes an `int` (`char x[n]`). */
export function fixedText(length: number): XdrType<string> {
  return new Mapped(
    'fixedText',
    fixedArray(int32(), length),
    (codes) => {
      const end = codes.indexOf(0);
      const bytes = codes.slice(0, end < 0 ? length : end).map((code) => code & 0xff);
      return decoder.decode(Uint8Array.from(bytes));
    },
    (value: string) => {
      const bytes = encoder.encode(value);
      return Array.from({ length }, (_, index) => bytes[index] ?? 0);
    },
  );
}

function uuidOf(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function bytesOf(value: string): Uint8Array {
  if (!UUID_PATTERN.test(value)) throw new TypeError(`"${value}" is no UUID`);
  return Buffer.from(value.replaceAll('-', ''), 'hex');
}
