/**
 * Kubernetes' protocol buffer envelope to JSON: four magic bytes, then a `runtime.Unknown` that
 * names the type and holds the object. kubectl falls back on nothing when it is refused.
 */
import { rfc3339 } from '../../api/verbs/times.ts';
import { type JsonObject, type JsonValue, setOwn } from '../../json.ts';
import { type Field, type Message, messageOf } from './messages.ts';

export const PROTOBUF_TYPE = 'application/vnd.kubernetes.protobuf';

const MAGIC = Buffer.from('k8s\0', 'latin1');
const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;
const VARINT_BYTES_MAX = 10;

/** The bytes are no such envelope, or end too early. */
export class ProtobufError extends Error {}

/** The object in an envelope; undefined when its kind is not taken in this form. */
export function decodeProtobuf(body: Uint8Array): JsonObject | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new ProtobufError('the magic bytes of protobuf are missing');
  }
  let apiVersion = '';
  let kind = '';
  let raw: Buffer = Buffer.alloc(0);
  for (const { number, value } of fieldsOf(bytes.subarray(MAGIC.length))) {
    if (number === 1 && Buffer.isBuffer(value)) {
      for (const field of fieldsOf(value)) {
        if (field.number === 1) apiVersion = String(field.value);
        if (field.number === 2) kind = String(field.value);
      }
    }
    if (number === 2 && Buffer.isBuffer(value)) raw = value;
  }
  const message = messageOf(apiVersion, kind);
  return message === undefined ? undefined : { apiVersion, kind, ...decodeMessage(message, raw) };
}

interface WireField {
  readonly number: number;
  /** Bytes of a length-delimited field, the number of a varint. */
  readonly value: Buffer | bigint;
}

function* fieldsOf(bytes: Buffer): Generator<WireField> {
  let offset = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let index = 0; index < VARINT_BYTES_MAX; index++) {
      const byte = bytes[offset++];
      if (byte === undefined) throw new ProtobufError('the message ends within a number');
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) return value;
    }
    throw new ProtobufError('a number is too long');
  };
  const take = (length: number): Buffer => {
    const end = offset + length;
    if (end > bytes.length) throw new ProtobufError('the message ends within a field');
    const part = bytes.subarray(offset, end);
    offset = end;
    return part;
  };
  while (offset < bytes.length) {
    const tag = Number(varint());
    const number = Math.floor(tag / 8);
    switch (tag % 8) {
      case VARINT:
        yield { number, value: varint() };
        break;
      case LENGTH_DELIMITED:
        yield { number, value: take(Number(varint())) };
        break;
      case FIXED64:
        yield { number, value: take(8) };
        break;
      case FIXED32:
        yield { number, value: take(4) };
        break;
      default:
        throw new ProtobufError(`field ${number} has an unknown wire type`);
    }
  }
}

function decodeMessage(message: Message, bytes: Buffer): JsonObject {
  const result: JsonObject = {};
  for (const { number, value } of fieldsOf(bytes)) {
    const field = Object.hasOwn(message, number) ? message[number] : undefined;
    if (field !== undefined) addField(result, field, value);
  }
  return result;
}

/** Go writes its zero values; JSON leaves them out. */
function addField(result: JsonObject, { name, kind }: Field, value: Buffer | bigint): void {
  if (typeof value === 'bigint') {
    const number = BigInt.asIntN(64, value);
    if (kind === 'bool') result[name] = number !== 0n;
    if (kind === 'int' && (number !== 0n || name === 'gracePeriodSeconds')) {
      result[name] = Number(number);
    }
    return;
  }
  if (kind === 'string') {
    if (value.length > 0) result[name] = value.toString('utf8');
  } else if (kind === 'strings') append(result, name, value.toString('utf8'));
  else if (kind === 'stringMap') addEntry(result, name, value, (bytes) => bytes.toString('utf8'));
  else if (kind === 'bytesMap') addEntry(result, name, value, (bytes) => bytes.toString('base64'));
  else if (kind === 'time') addTime(result, name, value);
  else if (typeof kind === 'object') {
    if ('messages' in kind) append(result, name, decodeMessage(kind.messages, value));
    else result[name] = decodeMessage(kind.message, value);
  }
}

function append(result: JsonObject, name: string, item: JsonValue): void {
  const list = result[name];
  if (Array.isArray(list)) list.push(item);
  else result[name] = [item];
}

function addEntry(
  result: JsonObject,
  name: string,
  entry: Buffer,
  read: (bytes: Buffer) => string,
): void {
  let key = '';
  let value = '';
  for (const field of fieldsOf(entry)) {
    if (!Buffer.isBuffer(field.value)) continue;
    if (field.number === 1) key = field.value.toString('utf8');
    if (field.number === 2) value = read(field.value);
  }
  const known = result[name];
  const map = typeof known === 'object' && known !== null && !Array.isArray(known) ? known : {};
  setOwn(map, key, value);
  result[name] = map;
}

/** Seconds since the epoch in field 1; the zero time of Go is an empty message. */
function addTime(result: JsonObject, name: string, bytes: Buffer): void {
  for (const { number, value } of fieldsOf(bytes)) {
    if (number !== 1 || typeof value !== 'bigint') continue;
    const ms = Number(BigInt.asIntN(64, value)) * 1000;
    if (!Number.isNaN(new Date(ms).getTime())) result[name] = rfc3339(ms);
  }
}
