/** Objects, lists and events in the form that a client asked for. */
import { metadataOf } from '../api/object-meta.ts';
import type { WatchEvent } from '../api/verbs/verbs.ts';
import { type JsonObject, objects } from '../json.ts';
import {
  builtinColumns,
  crdColumns,
  type IncludeObject,
  renderTable,
  type TableColumn,
} from '../printing/table.ts';
import type { ApiResource } from '../registry/api-resource.ts';
import type { Presentation } from './negotiation.ts';

export interface Presenter {
  /** An object, a list, or a Status, which stays what it is. */
  object(object: JsonObject): JsonObject;
  event(event: WatchEvent): JsonObject;
}

export interface PresenterOptions {
  readonly presentation: Presentation;
  readonly includeObject: IncludeObject;
  readonly nowMs: () => number;
}

/** What rows carry when the client does not say: the metadata. */
export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const value = query.get('includeObject');
  return value === 'None' || value === 'Object' ? value : 'Metadata';
}

/** One for each request: the first event of a watch carries what later ones leave out. */
export function createPresenter(resource: ApiResource, options: PresenterOptions): Presenter {
  const { presentation } = options;
  let form: (object: JsonObject, isFirst: boolean) => JsonObject = (object) => object;
  if (presentation.as === 'Table') form = tableForm(resource, options);
  else if (presentation.as === 'PartialObjectMetadata') {
    form = (object) => partialMetadata(object, `meta.k8s.io/${presentation.metaVersion}`);
  }
  let isFirst = true;
  return {
    object: (object) => (isStatus(object) ? object : form(object, true)),
    event: ({ type, object }) => {
      if (type === 'ERROR') return { type, object };
      const shown = form(object, isFirst);
      isFirst = false;
      return { type, object: shown };
    },
  };
}

function isStatus(object: JsonObject): boolean {
  return object.kind === 'Status' && object.apiVersion === 'v1';
}

function tableForm(
  resource: ApiResource,
  { presentation, includeObject, nowMs }: PresenterOptions,
) {
  const columns = columnsOf(resource);
  return (object: JsonObject, isFirst: boolean): JsonObject => {
    const table = renderTable({
      columns,
      objects: itemsOf(object) ?? [object],
      includeObject,
      nowMs: nowMs(),
      metadata: tableMetadata(object),
      omitColumns: !isFirst,
    });
    return { ...table, apiVersion: `meta.k8s.io/${presentation.metaVersion}` };
  };
}

function columnsOf(resource: ApiResource): readonly TableColumn[] {
  return resource.custom
    ? crdColumns(resource.printerColumns ?? [])
    : builtinColumns(resource.plural);
}

/** Those of a list; of a single object only its version. */
function tableMetadata(object: JsonObject): JsonObject {
  const metadata = metadataOf(object);
  if (itemsOf(object) !== undefined) return metadata;
  return { resourceVersion: metadata.resourceVersion ?? '' };
}

function itemsOf(object: JsonObject): JsonObject[] | undefined {
  return Array.isArray(object.items) ? objects(object.items) : undefined;
}

function partialMetadata(object: JsonObject, apiVersion: string): JsonObject {
  const items = itemsOf(object);
  const metadata = metadataOf(object);
  if (items === undefined) return { kind: 'PartialObjectMetadata', apiVersion, metadata };
  return {
    kind: 'PartialObjectMetadataList',
    apiVersion,
    metadata,
    items: items.map((item) => partialMetadata(item, apiVersion)),
  };
}
