/** Drops, or only names, the fields that a schema does not know. */
import { isJsonObject, type JsonObject, type JsonValue } from '../json.ts';
import type { SchemaNode } from './schema-node.ts';

/** Fields that every resource has, whatever its schema says. */
const RESOURCE_FIELDS: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata']);

/** A copy of the value without unknown fields. */
export function pruneValue(value: JsonValue, node: SchemaNode): JsonValue {
  return walk(value, node, '', () => undefined);
}

/** Paths such as `spec.foo` or `spec.items[1].bar` of all unknown fields, in document order. */
export function listUnknownFields(value: JsonValue, node: SchemaNode): string[] {
  const paths: string[] = [];
  walk(value, node, '', (path) => paths.push(path));
  return paths;
}

function walk(
  value: JsonValue,
  node: SchemaNode,
  path: string,
  onUnknown: (path: string) => void,
): JsonValue {
  if (Array.isArray(value)) {
    const items = node.items;
    if (items === undefined) return value;
    return value.map((item, index) => walk(item, items, `${path}[${index}]`, onUnknown));
  }
  if (!isJsonObject(value)) return value;
  return walkObject(value, node, path, onUnknown);
}

function walkObject(
  value: JsonObject,
  node: SchemaNode,
  path: string,
  onUnknown: (path: string) => void,
): JsonObject {
  const kept: [string, JsonValue][] = [];
  for (const [key, item] of Object.entries(value)) {
    const childPath = path === '' ? key : `${path}.${key}`;
    const child = node.properties.get(key) ?? node.additional;
    if (child !== undefined) kept.push([key, walk(item, child, childPath, onUnknown)]);
    else if (node.preserveUnknown || (node.embeddedResource && RESOURCE_FIELDS.has(key))) {
      kept.push([key, item]);
    } else onUnknown(childPath);
  }
  return Object.fromEntries(kept);
}
