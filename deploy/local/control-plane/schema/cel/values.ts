/**
 * JSON as CEL sees it, guided by the schema: integers become ints (bigint), date-times become
 * timestamps, objects become maps whose property names are escaped as Kubernetes escapes them.
 */
import { isJsonObject, type JsonObject, type JsonValue, objectOf } from '../../json.ts';
import type { SchemaNode } from '../schema-node.ts';

/** A value in a CEL activation. */
export type CelValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | Date
  | Uint8Array
  | CelValue[]
  | Map<string, CelValue>;

const RESERVED: ReadonlySet<string> = new Set(
  (
    'true false null in as break const continue else for function if import let loop package ' +
    'namespace return var void while'
  ).split(' '),
);
const IDENTIFIER = /^[A-Za-z_][A-Za-z0-9_./-]*$/;
const ESCAPES: readonly (readonly [RegExp, string])[] = [
  [/__/g, '__underscores__'],
  [/\./g, '__dot__'],
  [/-/g, '__dash__'],
  [/\//g, '__slash__'],
];
/** What a rule may see of the metadata of a resource. */
const VISIBLE_METADATA = ['name', 'generateName'];

/** Converts a value under its schema. */
export function toCel(value: JsonValue, node: SchemaNode): CelValue {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string') return stringToCel(value, node);
  if (typeof value === 'number') return numberToCel(value, node);
  if (Array.isArray(value)) {
    const { items } = node;
    return value.map((item) => (items === undefined ? untypedToCel(item) : toCel(item, items)));
  }
  return objectToCel(value, node);
}

/** The root of a resource: like any object, but of the metadata only the names are visible. */
export function resourceToCel(object: JsonObject, node: SchemaNode): CelValue {
  const result = objectToCel(object, node);
  const metadata = objectOf(object.metadata);
  const visible = VISIBLE_METADATA.flatMap((key): [string, CelValue][] => {
    const value = metadata[key];
    return typeof value === 'string' ? [[key, value]] : [];
  });
  return result.set('metadata', new Map(visible));
}

function objectToCel(object: JsonObject, node: SchemaNode): Map<string, CelValue> {
  const result = new Map<string, CelValue>();
  for (const [key, item] of Object.entries(object)) {
    const property = node.properties.get(key);
    if (property !== undefined) {
      const name = escapeProperty(key);
      if (name !== undefined) result.set(name, toCel(item, property));
    } else if (node.additional !== undefined) result.set(key, toCel(item, node.additional));
    else if (node.preserveUnknown && node.type === undefined) result.set(key, untypedToCel(item));
  }
  return result;
}

/** The name under which CEL reaches a property; undefined if it cannot. */
export function escapeProperty(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  if (!IDENTIFIER.test(name)) return undefined;
  return ESCAPES.reduce((text, [pattern, mark]) => text.replace(pattern, mark), name);
}

function stringToCel(value: string, node: SchemaNode): CelValue {
  switch (node.raw.format) {
    case 'date-time':
    case 'date': {
      const time = new Date(value);
      return Number.isNaN(time.getTime()) ? value : time;
    }
    case 'byte':
      return Uint8Array.from(atob(value), (character) => character.charCodeAt(0));
    default:
      return value;
  }
}

function numberToCel(value: number, node: SchemaNode): CelValue {
  if (node.type === 'number') return value;
  return Number.isInteger(value) ? BigInt(value) : value;
}

function untypedToCel(value: JsonValue): CelValue {
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value;
  if (Array.isArray(value)) return value.map(untypedToCel);
  if (!isJsonObject(value)) return value;
  return new Map(Object.entries(value).map(([key, item]) => [key, untypedToCel(item)]));
}
