/**
 * The two edits of server-side apply: merging a configuration into the live object, and taking out
 * what the applier no longer sets and nobody else owns.
 */
import { isJsonObject, type JsonObject, type JsonValue, own, setOwn } from '../json.ts';
import { anyNode, type SchemaNode } from '../schema/schema-node.ts';
import type { FieldSet } from './field-set.ts';
import { itemElement, type Part, partsOf } from './field-walk.ts';

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
  if (live === undefined || isEmpty(live)) return applied;
  if (isJsonObject(live) && !node.atomicMap) {
    if (isJsonObject(applied)) return mergeTyped(live, applied, node);
    // Null names no entry, so it takes none away: only what was applied before is removed.
    if (applied === null) return live;
  }
  if (Array.isArray(live) && node.listType !== 'atomic') {
    if (Array.isArray(applied)) return mergeList(live, applied, node);
    if (applied === null) return live;
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

/**
 * The object without what was applied before (`last`) and nobody owns now. A struct, item or entry
 * goes as a whole, with the defaults inside it that nobody owns; a list or map that loses its last
 * entry goes too, while one that was empty already stays as it is.
 */
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
    const ownedPart = owned?.children.get(part.element);
    if (lastPart === undefined) {
      kept.push([part.element, part.value]);
      continue;
    }
    if (claims(lastPart, part) && !claims(ownedPart, part)) continue;
    const below = keepOwned(part.value, lastPart, ownedPart, part.node);
    if (!isEmpty(below) || isEmpty(part.value)) kept.push([part.element, below]);
  }
  if (Array.isArray(value)) return kept.map(([, item]) => item);
  return Object.fromEntries(kept.map(([element, item]) => [element.slice(2), item]));
}

/** A field of a struct is claimed by whoever owns anything in it, an item or entry only itself. */
function claims(set: FieldSet | undefined, { named }: Part): boolean {
  return set !== undefined && (set.member || (named && set.children.size > 0));
}

/** Null, or a list or map without entries: such a value is a leaf, and `[]` differs from null. */
function isEmpty(value: JsonValue): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === null || (isJsonObject(value) && Object.keys(value).length === 0);
}
