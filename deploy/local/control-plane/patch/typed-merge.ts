/**
 * The two edits of server-side apply: merging a configuration into the live object, and taking out
 * what the applier no longer sets and nobody else owns.
 */
import { isJsonObject, type JsonObject, type JsonValue, own, setOwn } from '../json.ts';
import { anyNode, type SchemaNode } from '../schema/schema-node.ts';
import type { FieldSet } from './field-set.ts';
import { itemElement, partsOf } from './field-walk.ts';

const ANY = anyNode({});

/** The live object with the configuration laid over it. */
export function mergeTyped(live: JsonObject, applied: JsonObject, node: SchemaNode): JsonObject {
  const result: JsonObject = { ...live };
  for (const [key, value] of Object.entries(applied)) {
    const child = node.properties.get(key) ?? node.additional ?? ANY;
    setOwn(result, key, mergeValue(own(live, key), value, child));
  }
  return result;
}

function mergeValue(live: JsonValue | undefined, applied: JsonValue, node: SchemaNode): JsonValue {
  if (isJsonObject(live) && isJsonObject(applied) && !node.atomicMap) {
    return mergeTyped(live, applied, node);
  }
  if (Array.isArray(live) && Array.isArray(applied) && node.listType !== 'atomic') {
    return mergeList(live, applied, node);
  }
  return applied;
}

/** Items of both: the configuration's in its order, the others before what they stood before. */
function mergeList(
  live: readonly JsonValue[],
  applied: readonly JsonValue[],
  node: SchemaNode,
): JsonValue[] {
  const items = node.items ?? ANY;
  const liveElements = live.map((item) => itemElement(item, node));
  const appliedElements = applied.map((item) => itemElement(item, node));
  const isApplied = new Set(appliedElements);
  const liveByElement = new Map(live.map((item, index) => [liveElements[index] ?? '', item]));
  const result: JsonValue[] = [];
  let next = 0;
  /** Takes the items that only the live list has, up to the item that both have next. */
  const takeLiveOnly = (until: string | undefined) => {
    for (let item = live[next]; item !== undefined; item = live[++next]) {
      const element = liveElements[next] ?? '';
      if (element === until) return;
      if (!isApplied.has(element)) result.push(item);
    }
  };
  const nextShared: (string | undefined)[] = [];
  for (let index = applied.length - 1; index >= 0; index--) {
    const element = appliedElements[index] ?? '';
    nextShared[index] = liveByElement.has(element) ? element : nextShared[index + 1];
  }
  for (const [index, item] of applied.entries()) {
    const shared = nextShared[index];
    takeLiveOnly(shared);
    const element = appliedElements[index] ?? '';
    if (element === shared) next++;
    result.push(mergeValue(liveByElement.get(element), item, items));
  }
  takeLiveOnly(undefined);
  return result;
}

/** The object without the fields that were applied before (`last`) and are not `owned` now. */
export function removeUnowned(
  object: JsonObject,
  last: FieldSet,
  owned: FieldSet,
  node: SchemaNode,
): JsonObject {
  const kept = keepOwned(object, last, owned, node);
  return isJsonObject(kept) ? kept : {};
}

function keepOwned(
  value: JsonValue,
  last: FieldSet,
  owned: FieldSet | undefined,
  node: SchemaNode,
): JsonValue {
  const parts = partsOf(value, node);
  if (parts === undefined) return value;
  const kept: [string, JsonValue][] = [];
  for (const part of parts) {
    const lastPart = last.children.get(part.element);
    if (lastPart === undefined) {
      kept.push([part.element, part.value]);
      continue;
    }
    const ownedPart = owned?.children.get(part.element);
    const isItem = Array.isArray(value);
    if (isItem && lastPart.member && ownedPart?.member !== true) continue;
    if (partsOf(part.value, part.node) === undefined) {
      if (ownedPart !== undefined) kept.push([part.element, part.value]);
      continue;
    }
    const below = keepOwned(part.value, lastPart, ownedPart, part.node);
    if (ownedPart !== undefined || !isEmptyContainer(below)) kept.push([part.element, below]);
  }
  if (Array.isArray(value)) return kept.map(([, item]) => item);
  return Object.fromEntries(kept.map(([element, item]) => [element.slice(2), item]));
}

function isEmptyContainer(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.keys(value).length === 0;
}
