/** Paths and operations of a resource, in a form that both OpenAPI versions are written from. */
import { CUSTOM_PATCH_MEDIA_TYPES, PATCH_MEDIA_TYPES } from '../api/verbs/patch-types.ts';
import type { JsonObject } from '../json.ts';
import { gvk } from './definitions.ts';
import {
  definitionName,
  groupVersionPath,
  listDefinitionName,
  type OpenApiResource,
} from './resource.ts';

/** One method of a path. */
export interface ApiOperation {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** `x-kubernetes-action`. */
  readonly action: string;
  readonly id: string;
  readonly description: string;
  /** Names of parameters that `queryParameter` knows. */
  readonly query: readonly string[];
  /** Media types of the body; none if the operation has no body. */
  readonly consumes: readonly string[];
  /** Whether the body is the object (as opposed to a patch or delete options). */
  readonly takesObject: boolean;
  readonly returns: 'object' | 'list' | 'status';
  readonly gvk: JsonObject;
}

interface ApiPath {
  readonly path: string;
  /** Path parameters. */
  readonly parameters: readonly string[];
  readonly operations: readonly ApiOperation[];
}

interface QueryParameter {
  readonly type: 'string' | 'integer' | 'boolean';
  readonly description: string;
}

const QUERY_PARAMETERS: Readonly<Record<string, QueryParameter>> = {
  allowWatchBookmarks: { type: 'boolean', description: 'Asks for events of type BOOKMARK.' },
  continue: { type: 'string', description: 'Token of the next page of a list.' },
  dryRun: { type: 'string', description: 'All: check everything, store nothing.' },
  fieldManager: { type: 'string', description: 'Name of the actor that makes the change.' },
  fieldSelector: { type: 'string', description: 'Restricts the objects by their fields.' },
  fieldValidation: {
    type: 'string',
    description: 'What to do about unknown and duplicate fields: Ignore, Warn or Strict.',
  },
  force: { type: 'boolean', description: 'Takes fields over from other managers on apply.' },
  gracePeriodSeconds: { type: 'integer', description: 'Seconds before the object is deleted.' },
  labelSelector: { type: 'string', description: 'Restricts the objects by their labels.' },
  limit: { type: 'integer', description: 'Most objects in one page of a list.' },
  propagationPolicy: {
    type: 'string',
    description: 'What becomes of dependents: Orphan, Background or Foreground.',
  },
  resourceVersion: { type: 'string', description: 'Oldest version that the answer may show.' },
  timeoutSeconds: { type: 'integer', description: 'Longest time of a list or watch.' },
  watch: { type: 'boolean', description: 'Streams the changes instead of listing.' },
};

/** Type and description of a query parameter. */
export function queryParameter(name: string): QueryParameter {
  return QUERY_PARAMETERS[name] ?? { type: 'string', description: '' };
}

const LIST_QUERY = [
  'allowWatchBookmarks',
  'continue',
  'fieldSelector',
  'labelSelector',
  'limit',
  'resourceVersion',
  'timeoutSeconds',
  'watch',
];
const WRITE_QUERY = ['dryRun', 'fieldManager', 'fieldValidation'];
const DELETE_QUERY = ['dryRun', 'gracePeriodSeconds', 'propagationPolicy'];

/** How a version of OpenAPI writes what both say. */
export interface Dialect {
  /** A schema that refers to a definition. */
  ref(definition: string): JsonObject;
  pathParameter(name: string): JsonObject;
  /** `body` and `answer` are schemas; no body for an operation that takes none. */
  operation(described: ApiOperation, answer: JsonObject, body: JsonObject | undefined): JsonObject;
}

/** The `paths` of a document: those of each resource, sorted. */
export function describePaths(resources: readonly OpenApiResource[], dialect: Dialect): JsonObject {
  return Object.fromEntries(
    resources.flatMap((resource) =>
      resourcePaths(resource)
        .sort((left, right) => (left.path < right.path ? -1 : Number(left.path > right.path)))
        .map((path) => [path.path, pathItem(path, resource, dialect)]),
    ),
  );
}

function pathItem(path: ApiPath, resource: OpenApiResource, dialect: Dialect): JsonObject {
  const operations = path.operations.map((one) => [
    one.method,
    dialect.operation(
      one,
      answerSchema(one, resource, dialect),
      bodySchema(one, resource, dialect),
    ),
  ]);
  const parameters = path.parameters.map(dialect.pathParameter);
  return {
    ...Object.fromEntries(operations),
    ...(parameters.length > 0 && { parameters }),
  };
}

function answerSchema(
  { returns }: ApiOperation,
  resource: OpenApiResource,
  { ref }: Dialect,
): JsonObject {
  if (returns === 'list') return ref(listDefinitionName(resource));
  if (returns === 'object') return ref(definitionName(resource));
  return { type: 'object' };
}

function bodySchema(
  { consumes, takesObject }: ApiOperation,
  resource: OpenApiResource,
  { ref }: Dialect,
): JsonObject | undefined {
  if (consumes.length === 0) return undefined;
  return takesObject ? ref(definitionName(resource)) : { type: 'object' };
}

function resourcePaths(resource: OpenApiResource): ApiPath[] {
  const root = `/${groupVersionPath(resource)}`;
  const { plural, namespaced } = resource;
  const collection = namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`;
  const scope = namespaced ? ['namespace'] : [];
  const item = { path: `${collection}/{name}`, parameters: [...scope, 'name'] };
  const paths: ApiPath[] = [
    { path: collection, parameters: scope, operations: collectionOperations(resource) },
    { ...item, operations: itemOperations(resource, '') },
  ];
  if (resource.statusSubresource) {
    const operations = itemOperations(resource, 'Status').filter(
      ({ method }) => method !== 'delete',
    );
    paths.push({ ...item, path: `${item.path}/status`, operations });
  }
  if (namespaced) {
    const everywhere = operation(resource, 'get', 'list', 'ForAllNamespaces', {
      query: LIST_QUERY,
      returns: 'list',
    });
    paths.push({ path: `${root}/${plural}`, parameters: [], operations: [everywhere] });
  }
  return paths;
}

function collectionOperations(resource: OpenApiResource): ApiOperation[] {
  return [
    operation(resource, 'get', 'list', '', { query: LIST_QUERY, returns: 'list' }),
    operation(resource, 'post', 'post', '', objectBody(WRITE_QUERY)),
    operation(resource, 'delete', 'deletecollection', 'Collection', {
      query: [...DELETE_QUERY, ...LIST_QUERY],
      returns: 'status',
    }),
  ];
}

function itemOperations(resource: OpenApiResource, suffix: string): ApiOperation[] {
  const consumes = resource.custom
    ? CUSTOM_PATCH_MEDIA_TYPES
    : [...CUSTOM_PATCH_MEDIA_TYPES, PATCH_MEDIA_TYPES.strategic];
  return [
    operation(resource, 'get', 'get', suffix, {}),
    operation(resource, 'put', 'put', suffix, objectBody(WRITE_QUERY)),
    operation(resource, 'patch', 'patch', suffix, { query: [...WRITE_QUERY, 'force'], consumes }),
    operation(resource, 'delete', 'delete', suffix, { query: DELETE_QUERY, returns: 'status' }),
  ];
}

function objectBody(query: readonly string[]): Partial<ApiOperation> {
  return { query, consumes: ['application/json', 'application/yaml'], takesObject: true };
}

function operation(
  resource: OpenApiResource,
  method: ApiOperation['method'],
  action: string,
  suffix: string,
  rest: Partial<ApiOperation>,
): ApiOperation {
  const scope = resource.namespaced ? 'Namespaced' : '';
  const group = resource.group.split('.')[0] || 'core';
  const place = `${capital(group)}${capital(resource.version)}`;
  return {
    method,
    action,
    id: `${action}${place}${scope}${resource.kind}${suffix}`,
    description: `${action} ${suffix === 'Status' ? 'the status of ' : ''}${resource.kind}`,
    query: [],
    consumes: [],
    takesObject: false,
    returns: 'object',
    ...rest,
    gvk: gvk(resource, resource.kind),
  };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
