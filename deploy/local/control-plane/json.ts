/**
 * Plain JSON, as objects travel through the control plane: handlers, store, validation and
 * patches all work on these types and never on classes.
 */

/** Any value that JSON can express. */
export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;

/** A JSON object. Absent keys read as `undefined`. */
export interface JsonObject {
  [key: string]: JsonValue;
}

/** Short name for {@link JsonValue}. */
export type Json = JsonValue;

/** Tells a JSON object from every other JSON value. */
export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
