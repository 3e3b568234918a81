/** OpenAPI v3: an index, and one document for each group version. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../json.ts';
import { schemasV3 } from './definitions.ts';
import { type ApiOperation, type ApiPath, apiPaths, QUERY_PARAMETERS } from './operations.ts';
import {
  definitionName,
  groupVersionPath,
  listDefinitionName,
  type OpenApiResource,
} from './resource.ts';

export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/** The document at `/openapi/v3`: where the documents are, each with a hash of its content. */
export function openApiV3Index(resources: readonly OpenApiResource[]): JsonObject {
  const groupVersions = new Map(resources.map((item) => [groupVersionPath(item), item]));
  const paths = [...groupVersions]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, item]) => {
      const text = JSON.stringify(openApiV3(item, resources));
      const hash = createHash('sha256').update(text).digest('hex').toUpperCase();
      return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }];
    });
  return { paths: Object.fromEntries(paths) };
}

/** The document of one group version. */
export function openApiV3(
  { group, version }: GroupVersion,
  resources: readonly OpenApiResource[],
): JsonObject {
  const served = resources.filter((item) => item.group === group && item.version === version);
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: Object.fromEntries(
      served.flatMap((resource) =>
        apiPaths([resource]).map((path) => [path.path, pathItem(path, resource)]),
      ),
    ),
    components: { schemas: schemasV3(served) },
  };
}

function pathItem(path: ApiPath, resource: OpenApiResource): JsonObject {
  const operations = path.operations.map((operation) => [
    operation.method,
    describe(operation, resource),
  ]);
  const parameters = path.parameters.map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', uniqueItems: true },
  }));
  return {
    ...Object.fromEntries(operations),
    ...(parameters.length > 0 && { parameters }),
  };
}

function describe(operation: ApiOperation, resource: OpenApiResource): JsonObject {
  const parameters = operation.query.map((name) => ({
    name,
    in: 'query',
    description: QUERY_PARAMETERS[name]?.description ?? '',
    schema: { type: QUERY_PARAMETERS[name]?.type ?? 'string', uniqueItems: true },
  }));
  return {
    description: operation.description,
    operationId: operation.id,
    ...(parameters.length > 0 && { parameters }),
    ...(operation.consumes.length > 0 && { requestBody: requestBody(operation, resource) }),
    responses: {
      '200': {
        description: 'OK',
        content: { 'application/json': { schema: returned(operation, resource) } },
      },
    },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': operation.gvk,
  };
}

function requestBody(operation: ApiOperation, resource: OpenApiResource): JsonObject {
  const schema = operation.takesObject ? ref(definitionName(resource)) : { type: 'object' };
  const content = operation.consumes.map((mediaType) => [mediaType, { schema }]);
  return { content: Object.fromEntries(content), required: true };
}

function returned(operation: ApiOperation, resource: OpenApiResource): JsonObject {
  if (operation.returns === 'list') return ref(listDefinitionName(resource));
  if (operation.returns === 'object') return ref(definitionName(resource));
  return { type: 'object' };
}

function ref(name: string): JsonObject {
  return { $ref: `#/components/schemas/${name}` };
}
