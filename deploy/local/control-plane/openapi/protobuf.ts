/**
 * The writing half of protocol buffers, as far as one document needs it: varints, doubles and
 * length-delimited fields. Proto3: values at their default are not written.
 */

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;

const encoder = new TextEncoder();

/** Collects the fields of one message. */
export class MessageWriter {
  readonly #chunks: Uint8Array[] = [];
  #length = 0;

  bytes(field: number, value: Uint8Array): void {
    this.#tag(field, LENGTH_DELIMITED);
    this.#push(varint(BigInt(value.length)));
    this.#push(value);
  }

  string(field: number, value: string): void {
    if (value !== '') this.repeatedString(field, value);
  }

  /** An element of a list of strings, which is written even when it is empty. */
  repeatedString(field: number, value: string): void {
    this.bytes(field, encoder.encode(value));
  }

  bool(field: number, value: boolean): void {
    if (!value) return;
    this.#tag(field, VARINT);
    this.#push(Uint8Array.of(1));
  }

  int64(field: number, value: number): void {
    if (value === 0) return;
    this.#tag(field, VARINT);
    this.#push(varint(BigInt.asUintN(64, BigInt(Math.trunc(value)))));
  }

  double(field: number, value: number): void {
    if (value === 0) return;
    this.#tag(field, FIXED64);
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setFloat64(0, value, true);
    this.#push(bytes);
  }

  finish(): Uint8Array {
    const result = new Uint8Array(this.#length);
    let offset = 0;
    for (const chunk of this.#chunks) {
      result.set(chunk, offset);
      offset += chunk.length;
    }
    return result;
  }

  #tag(field: number, wireType: number): void {
    this.#push(varint((BigInt(field) << 3n) | BigInt(wireType)));
  }

  #push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7fn) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}
