/** Columns of a table: what kubectl is told about each, and how a cell comes from an object. */
import { isJsonObject, type JsonObject, type JsonValue, objects, own, stringOf } from '../json.ts';
import { ageOf } from './human-duration.ts';
import { compileJsonPath, type JsonPath } from './json-path.ts';

/** A column with its cells; `priority` above 0 shows only with `-o wide`. */
export interface TableColumn {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
  cell(object: JsonObject, nowMs: number): JsonValue;
}

const NAME_DESCRIPTION =
  'Name must be unique within a namespace. Is required when creating resources, although some ' +
  'resources may allow a client to request the generation of an appropriate name automatically. ' +
  'Name is primarily intended for creation idempotence and configuration definition. Cannot be ' +
  'updated. More info: ' +
  'https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names';
const CREATED_DESCRIPTION =
  'CreationTimestamp is a timestamp representing the server time when this object was created. ' +
  'It is not guaranteed to be set in happens-before order across separate operations. Clients ' +
  'may not set this value. It is represented in RFC3339 form and is in UTC.';

/** A column of text. */
export function textColumn(
  name: string,
  cell: TableColumn['cell'],
  priority = 0,
  description = '',
): TableColumn {
  return { name, type: 'string', format: '', description, priority, cell };
}

/** The first column of every table. */
export const nameColumn: TableColumn = {
  ...textColumn('Name', (object) => fieldText(object, 'metadata', 'name')),
  format: 'name',
  description: NAME_DESCRIPTION,
};

export const ageColumn: TableColumn = textColumn(
  'Age',
  (object, nowMs) => ageOf(field(object, 'metadata', 'creationTimestamp'), nowMs),
  0,
  CREATED_DESCRIPTION,
);

/** What kinds without columns of their own show beside the name. */
export const createdAtColumn: TableColumn = {
  ...textColumn('Created At', (object) => fieldText(object, 'metadata', 'creationTimestamp')),
  type: 'date',
  description: CREATED_DESCRIPTION,
};

/**
 * Columns of a custom resource, the name first. Without `additionalPrinterColumns` the API server
 * shows the age.
 */
export function crdColumns(additionalPrinterColumns: readonly JsonObject[] = []): TableColumn[] {
  if (additionalPrinterColumns.length === 0) {
    return [nameColumn, { ...ageColumn, type: 'date' }];
  }
  return [nameColumn, ...additionalPrinterColumns.map(crdColumn)];
}

function crdColumn(definition: JsonObject): TableColumn {
  const type = stringOf(definition.type);
  const path = tolerantPath(stringOf(definition.jsonPath));
  return {
    name: stringOf(definition.name),
    type,
    format: stringOf(definition.format),
    description: stringOf(definition.description),
    priority: typeof definition.priority === 'number' ? definition.priority : 0,
    cell: (object, nowMs) => cellOf(type, path(object)[0], nowMs),
  };
}

/** A path that does not compile finds nothing: a CRD that has one is still listed. */
function tolerantPath(source: string): JsonPath {
  try {
    return compileJsonPath(source);
  } catch {
    return () => [];
  }
}

/** A cell is empty (null) where the value is missing or is not of the column's type. */
function cellOf(type: string, value: JsonValue | undefined, nowMs: number): JsonValue {
  if (value === undefined || value === null) return null;
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? ageOf(value, nowMs) : null;
    case 'string':
      return typeof value === 'object' ? JSON.stringify(value) : String(value);
    default:
      return null;
  }
}

/** The value at a path of fields. */
export function field(object: JsonObject, ...path: string[]): JsonValue | undefined {
  let current: JsonValue | undefined = object;
  for (const key of path) current = isJsonObject(current) ? own(current, key) : undefined;
  return current;
}

/** The string at a path of fields, or the empty string. */
export function fieldText(object: JsonObject, ...path: string[]): string {
  return stringOf(field(object, ...path));
}

/** The objects in the list at a path of fields. */
export function fieldObjects(object: JsonObject, ...path: string[]): JsonObject[] {
  return objects(field(object, ...path));
}

/** How many entries a map or list has. */
export function count(value: JsonValue | undefined): number {
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
}
