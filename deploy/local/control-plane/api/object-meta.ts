/** Reading and replacing parts of `metadata` in plain JSON objects, without mutating them. */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  objectOf,
  stringOf,
  strings,
} from '../json.ts';

/** `object.metadata`, or an empty object. */
export function metadataOf(object: JsonObject): JsonObject {
  return objectOf(object.metadata);
}

/** A string field of the metadata, empty when absent. */
export function metaString(object: JsonObject, field: string): string {
  return stringOf(metadataOf(object)[field]);
}

/** A list of strings in the metadata, such as finalizers. */
export function metaStrings(object: JsonObject, field: string): string[] {
  return strings(metadataOf(object)[field]);
}

/** A map of strings in the metadata, such as labels. */
export function metaMap(object: JsonObject, field: string): Readonly<Record<string, string>> {
  return stringMap(metadataOf(object)[field]);
}

/** A number in the metadata, such as the generation. */
export function metaNumber(object: JsonObject, field: string): number | undefined {
  const value = metadataOf(object)[field];
  return typeof value === 'number' ? value : undefined;
}

export const nameOf = (object: JsonObject): string => metaString(object, 'name');
export const namespaceOf = (object: JsonObject): string => metaString(object, 'namespace');
export const uidOf = (object: JsonObject): string => metaString(object, 'uid');
export const resourceVersionOf = (object: JsonObject): string =>
  metaString(object, 'resourceVersion');
export const isDeleting = (object: JsonObject): boolean =>
  metaString(object, 'deletionTimestamp') !== '';

/** The object with some metadata fields replaced; `undefined` removes a field. */
export function withMetadata(
  object: JsonObject,
  changes: Readonly<Record<string, JsonValue | undefined>>,
): JsonObject {
  return { ...object, metadata: withFields(metadataOf(object), changes) };
}

/** A copy with some fields replaced; `undefined` removes a field. */
export function withFields(
  object: JsonObject,
  changes: Readonly<Record<string, JsonValue | undefined>>,
): JsonObject {
  const result: JsonObject = { ...object };
  for (const [field, value] of Object.entries(changes)) {
    if (value === undefined) delete result[field];
    else result[field] = value;
  }
  return result;
}

/** An object-valued field, or an empty object. */
export function objectAt(object: JsonObject, field: string): JsonObject {
  return objectOf(object[field]);
}

/** A string-valued field, or the empty string. */
export function stringAt(object: JsonObject, field: string): string {
  return stringOf(object[field]);
}

/** The strings of a map; none of anything else. */
export function stringMap(value: JsonValue | undefined): Readonly<Record<string, string>> {
  if (!isJsonObject(value)) return {};
  const entries = Object.entries(value).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return Object.fromEntries(entries);
}
