/** The OpenAPI v2 document: what kubectl before 1.27 explains and validates with. */
import type { JsonObject } from '../json.ts';
import { definitionsV2 } from './definitions.ts';
import { encodeOpenApiV2 } from './gnostic.ts';
import { type ApiOperation, type ApiPath, apiPaths, QUERY_PARAMETERS } from './operations.ts';
import { definitionName, listDefinitionName, type OpenApiResource } from './resource.ts';

/** What clients name in `Accept` for the binary form. */
export const OPENAPI_V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
/** The `Content-Type` of the answer: the `@` of the other name is not allowed in a media type. */
export const OPENAPI_V2_PROTOBUF_CONTENT_TYPE =
  'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

export interface OpenApiV2 {
  readonly document: JsonObject;
  /** The document as a `gnostic` protobuf message; encoded on first use. */
  protobuf(): Uint8Array;
}

/** The document of all resources together. */
export function openApiV2(resources: readonly OpenApiResource[]): OpenApiV2 {
  const document: JsonObject = {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: Object.fromEntries(
      resources.flatMap((resource) =>
        apiPaths([resource]).map((path) => [path.path, pathItem(path, resource)]),
      ),
    ),
    definitions: definitionsV2(resources),
  };
  let encoded: Uint8Array | undefined;
  return {
    document,
    protobuf: () => {
      encoded ??= encodeOpenApiV2(document);
      return encoded;
    },
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
    type: 'string',
    required: true,
    uniqueItems: true,
  }));
  return {
    ...Object.fromEntries(operations),
    ...(parameters.length > 0 && { parameters }),
  };
}

function describe(operation: ApiOperation, resource: OpenApiResource): JsonObject {
  const query = operation.query.map((name) => ({
    name,
    in: 'query',
    type: QUERY_PARAMETERS[name]?.type ?? 'string',
    description: QUERY_PARAMETERS[name]?.description ?? '',
    uniqueItems: true,
  }));
  const body = operation.consumes.length === 0 ? [] : [bodyParameter(operation, resource)];
  return {
    description: operation.description,
    operationId: operation.id,
    produces: ['application/json'],
    ...(operation.consumes.length > 0 && { consumes: [...operation.consumes] }),
    parameters: [...body, ...query],
    responses: { '200': { description: 'OK', schema: returned(operation, resource) } },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': operation.gvk,
  };
}

function bodyParameter(operation: ApiOperation, resource: OpenApiResource): JsonObject {
  const schema = operation.takesObject ? ref(definitionName(resource)) : { type: 'object' };
  return { name: 'body', in: 'body', required: true, schema };
}

function returned(operation: ApiOperation, resource: OpenApiResource): JsonObject {
  if (operation.returns === 'list') return ref(listDefinitionName(resource));
  if (operation.returns === 'object') return ref(definitionName(resource));
  return { type: 'object' };
}

function ref(name: string): JsonObject {
  return { $ref: `#/definitions/${name}` };
}
