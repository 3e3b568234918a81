/**
 * JSON patch (RFC 6902), with the strictness and the messages of the API server. Own code: the
 * libraries either patch in place, or treat `__proto__` as an error instead of a name.
 */
import { Buffer } from 'node:buffer';
import { isJsonObject, type JsonObject, type JsonValue, own, sameJson, setOwn } from '../json.ts';
import { PatchError } from './patch-error.ts';

/** As the API server: a longer patch is refused. */
const OPERATIONS_MAX = 10_000;
/** As the API server: copies that copy what was copied would double the document each time. */
const COPIED_BYTES_MAX = 3 * 1024 * 1024;

const INDEX = /^(0|[1-9]\d{0,8})$/;

interface Operation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: readonly string[];
  readonly from: readonly string[];
  readonly value: JsonValue;
  readonly text: string;
}

type Container = JsonObject | JsonValue[];

/** A patched copy of the object; all operations apply, or none. */
export function applyJsonPatch(object: JsonObject, patch: JsonValue): JsonObject {
  const operations = parseOperations(patch);
  let document: JsonValue = structuredClone(object);
  let copiedBytes = 0;
  for (const operation of operations) {
    if (operation.op === 'copy') copiedBytes += sizeToCopy(document, operation, copiedBytes);
    document = applyOperation(document, operation);
  }
  if (!isJsonObject(document)) {
    throw new PatchError('unprocessable', 'the patched document is not a JSON object');
  }
  return document;
}

function parseOperations(patch: JsonValue): Operation[] {
  if (!Array.isArray(patch)) {
    throw new PatchError('malformed', 'a JSON patch is an array of operations');
  }
  if (patch.length > OPERATIONS_MAX) {
    const limit = `The allowed maximum operations in a JSON patch is ${OPERATIONS_MAX}, got ${patch.length}`;
    throw new PatchError('too-large', limit);
  }
  return patch.map(parseOperation);
}

function parseOperation(item: JsonValue): Operation {
  if (!isJsonObject(item)) throw new PatchError('malformed', 'an operation is a JSON object');
  const { op, path } = item;
  if (typeof path !== 'string') throw new PatchError('malformed', 'an operation needs a path');
  const base = { path: parsePointer(path), from: [], value: null, text: path };
  switch (op) {
    case 'remove':
      return { ...base, op };
    case 'move':
    case 'copy':
      if (typeof item.from !== 'string') {
        throw new PatchError('malformed', `operation ${op} needs from`);
      }
      return { ...base, op, from: parsePointer(item.from) };
    case 'add':
    case 'replace':
    case 'test':
      if (item.value === undefined) {
        throw new PatchError('malformed', `operation ${op} needs a value`);
      }
      return { ...base, op, value: item.value };
    default:
      throw new PatchError('malformed', `Unexpected kind: ${JSON.stringify(op ?? 'unknown')}`);
  }
}

function parsePointer(pointer: string): string[] {
  if (pointer === '') return [];
  if (!pointer.startsWith('/')) {
    throw new PatchError('malformed', `path ${JSON.stringify(pointer)} must begin with "/"`);
  }
  const parts = pointer.slice(1).split('/');
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The bytes that a copy adds to those copied before; throws when they are too many. */
function sizeToCopy(document: JsonValue, operation: Operation, copiedBytes: number): number {
  const size = Buffer.byteLength(JSON.stringify(read(document, operation.from, operation)));
  if (copiedBytes + size <= COPIED_BYTES_MAX) return size;
  throw new PatchError(
    'unprocessable',
    `Unable to complete the copy, the accumulated size increase of copy is ` +
      `${copiedBytes + size}, exceeding the limit ${COPIED_BYTES_MAX}`,
  );
}

function applyOperation(document: JsonValue, operation: Operation): JsonValue {
  const { op, path, from, value } = operation;
  switch (op) {
    case 'add':
      return add(document, path, structuredClone(value), operation);
    case 'remove':
      return remove(document, path, operation);
    case 'replace':
      return replace(document, path, structuredClone(value), operation);
    case 'copy':
      return add(document, path, structuredClone(read(document, from, operation)), operation);
    case 'move': {
      const moved = read(document, from, operation);
      if (path.length > from.length && from.every((part, index) => part === path[index])) {
        throw failed(operation, 'a value cannot be moved into itself');
      }
      return add(remove(document, from, operation), path, moved, operation);
    }
    case 'test': {
      const found = lookUp(document, path);
      if (sameJson(found ?? null, value)) return document;
      throw new PatchError('unprocessable', `testing value ${operation.text} failed: test failed`);
    }
  }
}

function add(
  document: JsonValue,
  path: readonly string[],
  value: JsonValue,
  operation: Operation,
): JsonValue {
  const last = path.at(-1);
  if (last === undefined) return value;
  const parent = container(document, path, operation);
  if (!Array.isArray(parent)) setOwn(parent, last, value);
  else if (last === '-') parent.push(value);
  else parent.splice(indexIn(parent, last, parent.length, operation), 0, value);
  return document;
}

function remove(document: JsonValue, path: readonly string[], operation: Operation): JsonValue {
  const last = path.at(-1);
  if (last === undefined) throw failed(operation, 'the whole document cannot be removed');
  const parent = container(document, path, operation);
  if (Array.isArray(parent)) {
    parent.splice(indexIn(parent, last, parent.length - 1, operation), 1);
  } else {
    if (!Object.hasOwn(parent, last)) throw failed(operation, 'key does not exist');
    delete parent[last];
  }
  return document;
}

function replace(
  document: JsonValue,
  path: readonly string[],
  value: JsonValue,
  operation: Operation,
): JsonValue {
  const last = path.at(-1);
  if (last === undefined) return value;
  const parent = container(document, path, operation);
  if (Array.isArray(parent)) {
    parent[indexIn(parent, last, parent.length - 1, operation)] = value;
  } else {
    if (!Object.hasOwn(parent, last)) throw failed(operation, 'key does not exist');
    setOwn(parent, last, value);
  }
  return document;
}

function read(document: JsonValue, path: readonly string[], operation: Operation): JsonValue {
  const found = lookUp(document, path);
  if (found === undefined) throw failed(operation, `nothing at /${path.join('/')}`);
  return found;
}

function container(document: JsonValue, path: readonly string[], operation: Operation): Container {
  const parent = lookUp(document, path.slice(0, -1));
  if (Array.isArray(parent) || isJsonObject(parent)) return parent;
  throw failed(operation, 'doc is missing path');
}

function lookUp(document: JsonValue, path: readonly string[]): JsonValue | undefined {
  let current: JsonValue | undefined = document;
  for (const part of path) {
    if (Array.isArray(current)) current = INDEX.test(part) ? current[Number(part)] : undefined;
    else current = isJsonObject(current) ? own(current, part) : undefined;
  }
  return current;
}

function indexIn(list: JsonValue[], part: string, max: number, operation: Operation): number {
  const index = INDEX.test(part) ? Number(part) : -1;
  if (index < 0 || index > max) {
    throw failed(operation, `index ${part} is out of bounds of ${list.length} items`);
  }
  return index;
}

function failed({ op, text }: Operation, why: string): PatchError {
  return new PatchError(
    'unprocessable',
    `${op} operation does not apply: doc is missing path: ${JSON.stringify(text)}: ${why}`,
  );
}
