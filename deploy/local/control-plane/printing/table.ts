/** `meta.k8s.io/v1` Tables: what the server sends to `kubectl get`. */
import { type JsonObject, objectOf } from '../json.ts';
import type { TableColumn } from './columns.ts';

export { builtinColumns } from './builtin-columns.ts';
export { crdColumns, type TableColumn } from './columns.ts';

/** What each row carries beside its cells (`?includeObject=`). */
export type IncludeObject = 'None' | 'Metadata' | 'Object';

export interface TableRequest {
  readonly columns: readonly TableColumn[];
  readonly objects: readonly JsonObject[];
  readonly includeObject: IncludeObject;
  /** Time of the request, for ages. */
  readonly nowMs: number;
  /** `resourceVersion`, `continue` and `remainingItemCount` of the list. */
  readonly metadata?: JsonObject;
  /** Events of a watch after the first carry no column definitions. */
  readonly omitColumns?: boolean;
}

/** A Table with one row for each object, in their order. */
export function renderTable(request: TableRequest): JsonObject {
  const { columns, objects, includeObject, nowMs, metadata = {}, omitColumns } = request;
  return {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata,
    columnDefinitions: omitColumns === true ? null : columns.map(columnDefinition),
    rows: objects.map((object) => ({
      cells: columns.map((column) => column.cell(object, nowMs)),
      ...(includeObject !== 'None' && { object: rowObject(object, includeObject) }),
    })),
  };
}

function columnDefinition(column: TableColumn): JsonObject {
  const { name, type, format, description, priority } = column;
  return { name, type, format, description, priority };
}

function rowObject(object: JsonObject, include: 'Metadata' | 'Object'): JsonObject {
  if (include === 'Object') return object;
  return {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: objectOf(object.metadata),
  };
}
