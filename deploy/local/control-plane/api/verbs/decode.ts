/** From the body of a request to an object of the resource: type, unknown fields, defaults. */
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../../json.ts';
import { type ApiResource, apiVersionOf } from '../../registry/api-resource.ts';
import { objectAt, stringAt, withFields } from '../object-meta.ts';
import { badRequest, invalid, type StatusError } from '../status-error.ts';
import { withCanonicalTimes } from './times.ts';
import type { FieldValidation } from './verbs.ts';

export interface Decoded {
  readonly object: JsonObject;
  readonly warnings: string[];
}

/** Refuses what strict field validation refuses; `onStrict` words the refusal. */
export function decodeObject(
  resource: ApiResource,
  body: JsonObject,
  fieldValidation: FieldValidation = 'Warn',
  onStrict: (problems: string) => StatusError = (problems) => undecodable(resource, problems),
): Decoded {
  const typed = withType(resource, body);
  const problems = resource.schema.unknownFields(typed).map((path) => `unknown field "${path}"`);
  if (fieldValidation === 'Strict' && problems.length > 0) {
    throw onStrict(`strict decoding error: ${problems.join(', ')}`);
  }
  const { schema } = resource;
  const known = withoutNulls(resource, schema.prune(typed));
  const object = schema.applyDefaults(withCanonicalTimes(resource, known));
  return { object, warnings: fieldValidation === 'Warn' ? problems : [] };
}

/** Strict validation of a patch finds the fault in the patched object. */
export function strictPatchError(patched: JsonObject): (problems: string) => StatusError {
  return (problems) =>
    invalid({ group: '', plural: '', kind: '' }, '', [
      {
        type: 'FieldValueInvalid',
        field: 'patch',
        badValue: JSON.stringify(patched),
        detail: problems,
      },
    ]);
}

function undecodable({ kind, version }: ApiResource, problems: string): StatusError {
  return badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${problems}`);
}

/** Built-in kinds may leave their type out, as typed clients do. */
function withType(resource: ApiResource, body: JsonObject): JsonObject {
  const expected = apiVersionOf(resource);
  const [apiVersion, kind] = [stringAt(body, 'apiVersion'), stringAt(body, 'kind')];
  if (resource.custom && kind === '') throw badRequest("Object 'Kind' is missing");
  if (resource.custom && apiVersion === '') throw badRequest("Object 'apiVersion' is missing");
  if (apiVersion !== '' && apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version ` +
        `(${expected})`,
    );
  }
  if (kind !== '' && kind !== resource.kind) {
    throw badRequest(
      `${kind} in version "${resource.version}" cannot be handled as a ${resource.kind}`,
    );
  }
  const metadata = body['metadata'] ?? {};
  if (!isJsonObject(metadata)) throw undecodable(resource, 'metadata is not an object');
  return { ...body, apiVersion: expected, kind: resource.kind, metadata };
}

/** Parts of the metadata that an object without entries in them does not show. */
const OMITTED_WHEN_EMPTY = ['labels', 'annotations', 'finalizers', 'ownerReferences'];

/** To the server's own types a null is the same as an absent field; metadata is one of them. */
function withoutNulls(resource: ApiResource, object: JsonObject): JsonObject {
  const stripped = resource.custom ? object : stripNulls(object);
  const metadata = stripNulls(objectAt(stripped, 'metadata'));
  for (const field of OMITTED_WHEN_EMPTY) {
    const value = metadata[field];
    if (typeof value === 'object' && Object.keys(value ?? {}).length === 0) delete metadata[field];
  }
  return withFields(stripped, { metadata });
}

function stripNulls<T extends JsonValue>(value: T): T;
function stripNulls(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map((item) => stripNulls(item));
  if (!isJsonObject(value)) return value;
  const result: JsonObject = {};
  for (const [key, item] of Object.entries(value)) {
    if (item !== null) setOwn(result, key, stripNulls(item));
  }
  return result;
}
