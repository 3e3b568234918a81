/**
 * The schemas of both OpenAPI versions: the kinds that are served, their lists, and everything
 * that these refer to.
 */
import { isJsonObject, type JsonObject, type JsonValue, objectOf, own, setOwn } from '../json.ts';
import { builtinDefinitions } from './builtin/index.ts';
import { LIST_META, OBJECT_META, QUANTITY } from './builtin/meta.gen.ts';
import { definitionName, listDefinitionName, type OpenApiResource } from './resource.ts';

const REF = '#/definitions/';

const API_VERSION: JsonObject = {
  type: 'string',
  description:
    'APIVersion defines the versioned schema of this representation of an object. Servers ' +
    'should convert recognized schemas to the latest internal value, and may reject ' +
    'unrecognized values. More info: https://git.k8s.io/community/contributors/devel/' +
    'sig-architecture/api-conventions.md#resources',
};
const KIND: JsonObject = {
  type: 'string',
  description:
    'Kind is a string value representing the REST resource this object represents. Servers may ' +
    'infer this from the endpoint the client submits requests to. Cannot be updated. In ' +
    'CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/' +
    'api-conventions.md#types-kinds',
};
const METADATA: JsonObject = {
  $ref: `${REF}${OBJECT_META}`,
  description:
    "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/" +
    'sig-architecture/api-conventions.md#metadata',
};

/** Keywords that OpenAPI v2, or kubectl's reading of it, has no place for. */
const NOT_IN_V2: ReadonlySet<string> = new Set(['oneOf', 'anyOf', 'allOf', 'not', 'nullable']);

/** Definitions with `#/definitions/…` references, as OpenAPI v2 has them. */
export function definitionsV2(resources: readonly OpenApiResource[]): JsonObject {
  const collected = collect(resources);
  const entries = Object.entries(collected).map(([name, schema]): [string, JsonValue] => [
    name,
    name === QUANTITY ? { ...downgrade(schema), type: 'string' } : downgrade(schema),
  ]);
  return Object.fromEntries(entries);
}

/** Component schemas with `#/components/schemas/…` references, as OpenAPI v3 has them. */
export function schemasV3(resources: readonly OpenApiResource[]): JsonObject {
  const entries = Object.entries(collect(resources)).map(([name, schema]): [string, JsonValue] => [
    name,
    rewriteRefs(schema),
  ]);
  return Object.fromEntries(entries);
}

function collect(resources: readonly OpenApiResource[]): JsonObject {
  const result: JsonObject = {};
  for (const resource of resources) {
    const name = definitionName(resource);
    if (resource.custom) {
      const schema = customDefinition(resource);
      result[name] = schema;
      includeRefs(schema, result);
    } else includeDefinition(name, result);
    const list = listDefinition(resource);
    result[listDefinitionName(resource)] = list;
    includeRefs(list, result);
  }
  return Object.fromEntries(Object.entries(result).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function includeDefinition(name: string, result: JsonObject): void {
  if (Object.hasOwn(result, name)) return;
  const schema = own(builtinDefinitions, name);
  if (schema === undefined) return;
  result[name] = schema;
  includeRefs(schema, result);
}

function includeRefs(schema: JsonValue, result: JsonObject): void {
  if (Array.isArray(schema)) {
    for (const item of schema) includeRefs(item, result);
  } else if (isJsonObject(schema)) {
    for (const [key, value] of Object.entries(schema)) {
      const isRef = key === '$ref' && typeof value === 'string' && value.startsWith(REF);
      if (isRef) includeDefinition(value.slice(REF.length), result);
      else includeRefs(value, result);
    }
  }
}

function customDefinition(resource: OpenApiResource): JsonObject {
  const { openAPISchema } = resource;
  const declared = objectOf(openAPISchema.properties);
  return {
    ...openAPISchema,
    type: 'object',
    properties: { ...declared, apiVersion: API_VERSION, kind: KIND, metadata: METADATA },
    'x-kubernetes-group-version-kind': [gvk(resource, resource.kind)],
  };
}

function listDefinition(resource: OpenApiResource): JsonObject {
  return {
    description: `${resource.listKind} is a list of ${resource.kind}`,
    type: 'object',
    required: ['items'],
    properties: {
      apiVersion: API_VERSION,
      items: {
        description: `List of ${resource.plural}.`,
        type: 'array',
        items: { $ref: `${REF}${definitionName(resource)}` },
      },
      kind: KIND,
      metadata: { $ref: `${REF}${LIST_META}`, description: 'Standard list metadata.' },
    },
    'x-kubernetes-group-version-kind': [gvk(resource, resource.listKind)],
  };
}

/** The extension that ties schemas and operations to a kind. */
export function gvk({ group, version }: OpenApiResource, kind: string): JsonObject {
  return { group, kind, version };
}

/**
 * A structural schema as OpenAPI v2 can say it. Where v2 cannot, the schema gets weaker, never
 * stricter: old clients validate with it before they send.
 */
function downgrade(schema: JsonValue): JsonObject {
  if (!isJsonObject(schema)) return {};
  const isOpen = schema.nullable === true || preservesUnknown(schema);
  const result: JsonObject = {};
  for (const [key, value] of Object.entries(schema)) {
    if (NOT_IN_V2.has(key)) continue;
    if (
      isOpen &&
      ['type', 'properties', 'items', 'required', 'additionalProperties'].includes(key)
    ) {
      continue;
    }
    setOwn(result, key, downgradeKeyword(key, value));
  }
  if (schema['x-kubernetes-int-or-string'] === true) {
    result.type = 'string';
    result.format = 'int-or-string';
  } else if (preservesUnknown(schema) && schema.nullable !== true) result.type = 'object';
  return result;
}

function downgradeKeyword(key: string, value: JsonValue): JsonValue {
  if (key === 'properties' && isJsonObject(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, property]) => [name, downgrade(property)]),
    );
  }
  const isSchema = (key === 'items' || key === 'additionalProperties') && isJsonObject(value);
  return isSchema ? downgrade(value) : value;
}

function preservesUnknown(schema: JsonObject): boolean {
  return schema['x-kubernetes-preserve-unknown-fields'] === true && schema.type === 'object';
}

/** In v3 nothing may stand beside `$ref`, so a reference with a description moves into allOf. */
function rewriteRefs(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(rewriteRefs);
  if (!isJsonObject(value)) return value;
  const { $ref, ...rest } = value;
  const others = Object.fromEntries(
    Object.entries(rest).map(([key, item]) => [key, rewriteRefs(item)]),
  );
  if (typeof $ref !== 'string' || !$ref.startsWith(REF)) {
    return $ref === undefined ? others : { ...others, $ref: rewriteRefs($ref) };
  }
  const reference = { $ref: `#/components/schemas/${$ref.slice(REF.length)}` };
  return Object.keys(others).length === 0 ? reference : { ...others, allOf: [reference] };
}
