/** Lists that are sets or maps: their keys, their duplicates, and which old item is which. */
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, own } from '../json.ts';
import { duplicate, type FieldError } from './field-error.ts';
import type { SchemaNode } from './schema-node.ts';

/** The key fields of an item of a list map, with the defaults of the schema for absent ones. */
export function itemKeys(item: JsonValue, node: SchemaNode): JsonObject | undefined {
  if (!isJsonObject(item)) return undefined;
  const keys: [string, JsonValue][] = [];
  for (const name of [...node.listKeys].sort()) {
    const value = own(item, name) ?? node.items?.properties.get(name)?.default;
    if (value !== undefined) keys.push([name, value]);
  }
  return Object.fromEntries(keys);
}

/** The items of old lists by key; an entry lives as long as the list. */
const indexes = new WeakMap<readonly JsonValue[], Map<string, JsonValue>>();

/** The item of the old list that a new item continues; undefined where none can be told. */
export function correlateItem(
  item: JsonValue,
  old: JsonValue | undefined,
  node: SchemaNode,
): JsonValue | undefined {
  if (node.listType !== 'map' || !Array.isArray(old)) return undefined;
  const keys = itemKeys(item, node);
  return keys === undefined ? undefined : indexOf(old, node).get(canonicalJson(keys));
}

function indexOf(list: readonly JsonValue[], node: SchemaNode): Map<string, JsonValue> {
  const known = indexes.get(list);
  if (known !== undefined) return known;
  const index = new Map<string, JsonValue>();
  for (const item of list) {
    const keys = itemKeys(item, node);
    if (keys !== undefined) index.set(canonicalJson(keys), item);
  }
  indexes.set(list, index);
  return index;
}

/** `Duplicate value` for every item of a set or list map that repeats an earlier one. */
export function listDuplicates(
  list: readonly JsonValue[],
  node: SchemaNode,
  path: string,
): FieldError[] {
  if (node.listType === 'atomic') return [];
  const seen = new Set<string>();
  const errors: FieldError[] = [];
  for (const [index, item] of list.entries()) {
    const identity = node.listType === 'set' ? item : itemKeys(item, node);
    if (identity === undefined) continue;
    const text = canonicalJson(identity);
    if (seen.has(text)) errors.push(duplicate(`${path}[${index}]`, identity));
    seen.add(text);
  }
  return errors;
}
