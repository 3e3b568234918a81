/**
 * Times as the server's own types write them: UTC, whole seconds, or microseconds where the type
 * says so. Clients that read an object and send it back spell them in ways of their own
 * (`…:00.000Z`), which must neither count as a change nor as a touch on an immutable field.
 */
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../../json.ts';
import type { ApiResource } from '../../registry/api-resource.ts';
import type { SchemaNode } from '../../schema/schema-node.ts';
import { objectAt, withFields } from '../object-meta.ts';

/** Fields of the type MicroTime; in the schemas it looks like any other time. */
const MICRO_TIMES = new Set(['acquireTime', 'renewTime', 'eventTime', 'lastObservedTime']);
const METADATA_TIMES = ['creationTimestamp', 'deletionTimestamp'];
const TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.(\d+))?(?:[Zz]|[+-]\d\d:\d\d)$/;
const MICRO_DIGITS = 6;

/** Metadata always; the rest of a custom resource is its definition's own business. */
export function withCanonicalTimes(resource: ApiResource, object: JsonObject): JsonObject {
  const metadata = canonicalMetadata(objectAt(object, 'metadata'));
  if (resource.custom) return withFields(object, { metadata });
  const canonical = walk(resource.schema.root, object, '');
  return isJsonObject(canonical) ? withFields(canonical, { metadata }) : object;
}

function canonicalMetadata(metadata: JsonObject): JsonObject {
  const result = { ...metadata };
  for (const field of METADATA_TIMES) {
    const value = metadata[field];
    if (typeof value === 'string') result[field] = canonicalTime(value);
  }
  const { managedFields } = metadata;
  if (Array.isArray(managedFields)) {
    result['managedFields'] = managedFields.map((entry) =>
      isJsonObject(entry) && typeof entry['time'] === 'string'
        ? { ...entry, time: canonicalTime(entry['time']) }
        : entry,
    );
  }
  return result;
}

function walk(node: SchemaNode | undefined, value: JsonValue, field: string): JsonValue {
  if (node === undefined) return value;
  if (typeof value === 'string') {
    if (node.raw['format'] !== 'date-time') return value;
    return MICRO_TIMES.has(field) ? canonicalMicroTime(value) : canonicalTime(value);
  }
  if (Array.isArray(value)) return value.map((item) => walk(node.items, item, field));
  if (!isJsonObject(value)) return value;
  const result: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    setOwn(result, key, walk(node.properties.get(key) ?? node.additional, item, key));
  }
  return result;
}

/** RFC 3339 in UTC and whole seconds. */
export function rfc3339(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The same of a text; what is no time stays for validation to refuse. */
export function canonicalTime(text: string): string {
  const time = parse(text);
  return time === undefined ? text : rfc3339(time.ms);
}

/** The same with six decimals, as leases and events carry them. */
export function canonicalMicroTime(text: string): string {
  const time = parse(text);
  if (time === undefined) return text;
  const micros = time.fraction.padEnd(MICRO_DIGITS, '0').slice(0, MICRO_DIGITS);
  return rfc3339(time.ms).replace('Z', `.${micros}Z`);
}

function parse(text: string): { ms: number; fraction: string } | undefined {
  const [matched, fraction = ''] = TIME.exec(text) ?? [];
  const ms = matched === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(ms) ? undefined : { ms, fraction };
}
