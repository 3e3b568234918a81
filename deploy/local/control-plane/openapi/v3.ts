/** OpenAPI v3: an index, and one document for each group version. */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../json.ts';
import { schemasV3 } from './definitions.ts';
import { type Dialect, describePaths, queryParameter } from './operations.ts';
import { groupVersionPath, type OpenApiResource } from './resource.ts';

export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

const DIALECT: Dialect = {
  ref: (definition) => ({ $ref: `#/components/schemas/${definition}` }),
  pathParameter: (name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', uniqueItems: true },
  }),
  operation: (described, answer, body) => {
    const parameters = described.query.map((name) => {
      const { type, description } = queryParameter(name);
      return { name, in: 'query', description, schema: { type, uniqueItems: true } };
    });
    return {
      description: described.description,
      operationId: described.id,
      ...(parameters.length > 0 && { parameters }),
      ...(body !== undefined && { requestBody: requestBody(described.consumes, body) }),
      responses: {
        '200': { description: 'OK', content: { 'application/json': { schema: answer } } },
      },
      'x-kubernetes-action': described.action,
      'x-kubernetes-group-version-kind': described.gvk,
    };
  },
};

function requestBody(mediaTypes: readonly string[], schema: JsonObject): JsonObject {
  const content = Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema }]));
  return { content, required: true };
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
    paths: describePaths(served, DIALECT),
    components: { schemas: schemasV3(served) },
  };
}
