/**
 * Strategic merge patch, as `k8s.io/apimachinery/pkg/util/strategicpatch` applies it: like a merge
 * patch, but lists with a merge key (or the merge strategy) merge item by item, and directives
 * (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`) steer it.
 */
import {
  canonicalJson,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  own,
  setOwn,
} from '../json.ts';
import { anyNode, type SchemaNode } from '../schema/schema-node.ts';
import { type Identify, orderItems } from './list-order.ts';
import { PatchError } from './patch-error.ts';

const PATCH = '$patch';
const RETAIN_KEYS = '$retainKeys';
const ORDER_PREFIX = '$setElementOrder/';
const DELETE_PREFIX = '$deleteFromPrimitiveList/';

const ANY = anyNode({});

/** A patched copy of the object; `root` is the schema with merge keys and strategies. */
export function applyStrategicMergePatch(
  object: JsonObject,
  patch: JsonValue,
  root: SchemaNode,
): JsonObject {
  if (!isJsonObject(patch)) {
    throw new PatchError('malformed', 'a strategic merge patch is a JSON object');
  }
  return mergeObject(object, patch, root);
}

function mergeObject(original: JsonObject, patch: JsonObject, node: SchemaNode): JsonObject {
  const directive = own(patch, PATCH);
  if (directive !== undefined && directive !== 'merge') {
    if (directive === 'delete') return {};
    if (directive !== 'replace') throw unknownDirective(directive);
    return dropDirectives(patch);
  }
  const result = retainKeys(original, patch);
  const orders = readOrders(patch);
  for (const [key, value] of Object.entries(patch)) {
    if (key === PATCH || key === RETAIN_KEYS || key.startsWith(ORDER_PREFIX)) continue;
    if (key.startsWith(DELETE_PREFIX)) deletePrimitives(result, key, value);
    else mergeField(result, key, value, childNode(node, key), orders.get(key));
  }
  for (const [key, order] of orders) {
    if (!Object.hasOwn(patch, key)) reorder(result, key, order, childNode(node, key));
  }
  return result;
}

function mergeField(
  target: JsonObject,
  key: string,
  value: JsonValue,
  node: SchemaNode,
  order: readonly JsonValue[] | undefined,
): void {
  if (value === null) {
    delete target[key];
    return;
  }
  const old = own(target, key);
  if (isJsonObject(old) && isJsonObject(value)) {
    const replaces = node.patchStrategies.includes('replace');
    setOwn(target, key, replaces ? dropDirectives(value) : mergeObject(old, value, node));
  } else if (Array.isArray(old) && Array.isArray(value) && mergesItems(node)) {
    setOwn(target, key, mergeList(old, value, key, node, order));
  } else setOwn(target, key, dropAll(value));
}

function mergesItems(node: SchemaNode): boolean {
  return node.patchStrategies.includes('merge');
}

function mergeList(
  original: readonly JsonValue[],
  patch: readonly JsonValue[],
  key: string,
  node: SchemaNode,
  order: readonly JsonValue[] | undefined,
): JsonValue[] {
  const areObjects = [...original, ...patch].some(isJsonObject);
  const identify = identifier(areObjects ? node.patchMergeKey : undefined);
  if (!areObjects) {
    const merged = unique([...original, ...patch], identify);
    return orderItems(merged, order ?? patch, original, identify);
  }
  const mergeKey = node.patchMergeKey;
  if (mergeKey === undefined) {
    throw new PatchError('malformed', `cannot merge lists without merge key for ${key}`);
  }
  const { kept, plain, replaces } = applyItemDirectives(original, patch, mergeKey);
  if (replaces) return plain.map(dropAll);
  const merged = [...kept];
  for (const item of plain) mergeItem(merged, item, mergeKey, node.items ?? ANY);
  return orderItems(merged, order ?? plain, original, identify);
}

/** Splits off the items that are directives: `$patch: delete` and `$patch: replace`. */
function applyItemDirectives(
  original: readonly JsonValue[],
  patch: readonly JsonValue[],
  mergeKey: string,
): { kept: JsonValue[]; plain: JsonObject[]; replaces: boolean } {
  let kept = [...original];
  const plain: JsonObject[] = [];
  let replaces = false;
  for (const item of patch) {
    if (!isJsonObject(item)) {
      throw new PatchError('malformed', `expected an object with the key ${mergeKey} in the list`);
    }
    const directive = own(item, PATCH);
    if (directive === undefined) plain.push(item);
    else if (directive === 'replace') replaces = true;
    else if (directive === 'delete') {
      const value = keyOf(item, mergeKey);
      kept = kept.filter((other) => !hasKey(other, mergeKey, value));
    } else if (directive === 'merge') {
      throw new PatchError('malformed', 'merging lists cannot yet be specified in the patch');
    } else throw unknownDirective(directive);
  }
  return { kept, plain, replaces };
}

function mergeItem(list: JsonValue[], item: JsonObject, mergeKey: string, node: SchemaNode): void {
  const value = keyOf(item, mergeKey);
  const index = list.findIndex((other) => hasKey(other, mergeKey, value));
  const old = list[index];
  if (isJsonObject(old)) list[index] = mergeObject(old, item, node);
  else list.push(dropDirectives(item));
}

function keyOf(item: JsonObject, mergeKey: string): JsonValue {
  const value = own(item, mergeKey);
  if (value !== undefined) return value;
  const text = JSON.stringify(item);
  throw new PatchError(
    'malformed',
    `map: ${text} does not contain declared merge key: ${mergeKey}`,
  );
}

function hasKey(item: JsonValue, mergeKey: string, value: JsonValue): boolean {
  return isJsonObject(item) && own(item, mergeKey) === value;
}

/** `$retainKeys`: whatever it does not name goes, and it has to name all that the patch sets. */
function retainKeys(original: JsonObject, patch: JsonObject): JsonObject {
  const retained = own(patch, RETAIN_KEYS);
  if (retained === undefined) return { ...original };
  if (!Array.isArray(retained))
    throw new PatchError('malformed', 'invalid patch format: $retainKeys');
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || key.startsWith('$') || retained.includes(key)) continue;
    throw new PatchError('malformed', `invalid patch format of $retainKeys: ${key} is not in it`);
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => retained.includes(key)));
}

function readOrders(patch: JsonObject): Map<string, readonly JsonValue[]> {
  const orders = new Map<string, readonly JsonValue[]>();
  for (const [key, value] of Object.entries(patch)) {
    if (!key.startsWith(ORDER_PREFIX)) continue;
    if (!Array.isArray(value)) throw new PatchError('malformed', `${key} must be a list`);
    orders.set(key.slice(ORDER_PREFIX.length), value);
  }
  return orders;
}

function reorder(
  target: JsonObject,
  key: string,
  order: readonly JsonValue[],
  node: SchemaNode,
): void {
  const list = own(target, key);
  if (!Array.isArray(list)) return;
  const mergeKey = list.some(isJsonObject) ? node.patchMergeKey : undefined;
  setOwn(target, key, orderItems(list, order, list, identifier(mergeKey)));
}

function deletePrimitives(target: JsonObject, key: string, value: JsonValue): void {
  if (!Array.isArray(value)) throw new PatchError('malformed', `${key} must be a list`);
  const name = key.slice(DELETE_PREFIX.length);
  const list = own(target, name);
  if (!Array.isArray(list)) return;
  const doomed = new Set(value.map(canonicalJson));
  setOwn(
    target,
    name,
    list.filter((item) => !doomed.has(canonicalJson(item))),
  );
}

function identifier(mergeKey: string | undefined): Identify {
  return (item) => {
    if (mergeKey === undefined) return canonicalJson(item);
    return canonicalJson(isJsonObject(item) ? (own(item, mergeKey) ?? null) : item);
  };
}

function unique(list: readonly JsonValue[], identify: Identify): JsonValue[] {
  return [...new Map(list.map((item) => [identify(item), item])).values()];
}

function childNode(node: SchemaNode, key: string): SchemaNode {
  return node.properties.get(key) ?? node.additional ?? ANY;
}

/** What a patch adds anew: without directives, and without the nulls that would remove. */
function dropDirectives(patch: JsonObject): JsonObject {
  const entries = Object.entries(patch).filter(
    ([key, value]) =>
      value !== null &&
      key !== PATCH &&
      key !== RETAIN_KEYS &&
      !key.startsWith(ORDER_PREFIX) &&
      !key.startsWith(DELETE_PREFIX),
  );
  return Object.fromEntries(entries.map(([key, value]) => [key, dropAll(value)]));
}

function dropAll(value: JsonValue): JsonValue {
  if (isJsonObject(value)) return dropDirectives(value);
  if (!Array.isArray(value)) return value;
  return value.filter((item) => !(isJsonObject(item) && Object.hasOwn(item, PATCH))).map(dropAll);
}

function unknownDirective(directive: JsonValue): PatchError {
  return new PatchError('malformed', `unknown patch type found: ${JSON.stringify(directive)}`);
}
