/**
 * Defaulting as the API server does it: absent properties get the default of their schema, the
 * defaults inside a default are applied too, and a `null` that the schema does not allow is
 * replaced by the default or dropped.
 */
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../json.ts';
import type { SchemaNode } from './schema-node.ts';

/** A copy of the value with all defaults filled in. */
export function defaultValue(value: JsonValue, node: SchemaNode): JsonValue {
  if (Array.isArray(value)) {
    const items = node.items;
    if (items === undefined) return value;
    return value.map((item) => defaultValue(replaceNull(item, items) ?? item, items));
  }
  return isJsonObject(value) ? defaultObject(value, node) : value;
}

function defaultObject(value: JsonObject, node: SchemaNode): JsonObject {
  const result: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    const child = node.properties.get(key) ?? node.additional;
    if (child === undefined) {
      setOwn(result, key, item);
      continue;
    }
    const present = replaceNull(item, child);
    if (present !== undefined) setOwn(result, key, defaultValue(present, child));
  }
  for (const [key, child] of node.properties) {
    if (child.default === undefined || Object.hasOwn(result, key)) continue;
    setOwn(result, key, defaultValue(structuredClone(child.default), child));
  }
  return result;
}

/** The value, the default in place of a forbidden null, or undefined if there is no default. */
function replaceNull(value: JsonValue, node: SchemaNode): JsonValue | undefined {
  if (value !== null || node.nullable) return value;
  return node.default === undefined ? undefined : structuredClone(node.default);
}
