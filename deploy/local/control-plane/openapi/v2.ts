/** The OpenAPI v2 document: what kubectl before 1.27 explains and validates with. */
import type { JsonObject } from '../json.ts';
import { definitionsV2 } from './definitions.ts';
import { encodeOpenApiV2 } from './gnostic.ts';
import { type Dialect, describePaths, queryParameter } from './operations.ts';
import type { OpenApiResource } from './resource.ts';

/** What clients name in `Accept` for the binary form. */
export const OPENAPI_V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
/** The `Content-Type` of the answer: the `@` of the other name is not allowed in a media type. */
export const OPENAPI_V2_PROTOBUF_CONTENT_TYPE =
  'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

export interface OpenApiV2 {
  readonly document: JsonObject;
  /** Encodes the document as a `gnostic` protobuf message. */
  protobuf(): Uint8Array;
}

const DIALECT: Dialect = {
  ref: (definition) => ({ $ref: `#/definitions/${definition}` }),
  pathParameter: (name) => ({
    name,
    in: 'path',
    type: 'string',
    required: true,
    uniqueItems: true,
  }),
  operation: (described, answer, schema) => {
    const body = schema === undefined ? [] : [{ name: 'body', in: 'body', required: true, schema }];
    const query = described.query.map((name) => ({
      name,
      in: 'query',
      ...queryParameter(name),
      uniqueItems: true,
    }));
    return {
      description: described.description,
      operationId: described.id,
      produces: ['application/json'],
      ...(described.consumes.length > 0 && { consumes: [...described.consumes] }),
      parameters: [...body, ...query],
      responses: { '200': { description: 'OK', schema: answer } },
      'x-kubernetes-action': described.action,
      'x-kubernetes-group-version-kind': described.gvk,
    };
  },
};

/** The document of all resources together. */
export function openApiV2(resources: readonly OpenApiResource[]): OpenApiV2 {
  const document: JsonObject = {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: 'unversioned' },
    paths: describePaths(resources, DIALECT),
    definitions: definitionsV2(resources),
  };
  return { document, protobuf: () => encodeOpenApiV2(document) };
}
