/** Secrets and ConfigMaps: base64 data, `stringData`, types and `immutable`. */
import { Buffer } from 'node:buffer';
import { isDeepStrictEqual } from 'node:util';
import { objectAt, stringAt, stringMap, withFields } from '../../api/object-meta.ts';
import type { JsonObject } from '../../json.ts';
import type { FieldError } from '../../schema/field-error.ts';
import type { Strategy } from '../api-resource.ts';
import { plainStrategy } from './plain.ts';

const SECRET_BYTES_MAX = 1024 * 1024;
const KEY_LENGTH_MAX = 253;
const KEY_PATTERN = /^[-._a-zA-Z0-9]+$/;
const BASE64_PATTERN = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const OPAQUE = 'Opaque';

export const secretStrategy: Strategy = {
  ...plainStrategy,
  selectableFields: { type: (secret) => stringAt(secret, 'type') },
  prepareForCreate: mergeStringData,
  prepareForUpdate: mergeStringData,
  validate: (secret, old) => [
    ...validateSecretData(objectAt(secret, 'data')),
    ...(old === undefined ? [] : validateSecretUpdate(secret, old)),
  ],
};

export const configMapStrategy: Strategy = {
  ...plainStrategy,
  validate: (map, old) => [
    ...validateKeys('data', objectAt(map, 'data')),
    ...validateKeys('binaryData', objectAt(map, 'binaryData')),
    ...(old === undefined ? [] : validateImmutable(map, old, ['data', 'binaryData'])),
  ],
};

/** `stringData` is write-only: it ends up in `data`. */
function mergeStringData(secret: JsonObject): JsonObject {
  const written = Object.entries(stringMap(secret.stringData)).map(([key, value]) => [
    key,
    Buffer.from(value, 'utf8').toString('base64'),
  ]);
  const data = { ...objectAt(secret, 'data'), ...Object.fromEntries(written) };
  return withFields(secret, {
    stringData: undefined,
    data: Object.keys(data).length > 0 ? data : undefined,
    type: stringAt(secret, 'type') || OPAQUE,
  });
}

function validateSecretData(data: JsonObject): FieldError[] {
  const errors = validateKeys('data', data);
  let size = 0;
  for (const [key, value] of Object.entries(data)) {
    if (typeof value !== 'string' || !BASE64_PATTERN.test(value)) {
      // The value itself is a secret and stays out of the message.
      const detail = 'must be base64-encoded';
      errors.push({ type: 'FieldValueForbidden', field: `data[${key}]`, detail });
    } else size += Buffer.byteLength(value, 'base64');
  }
  if (size > SECRET_BYTES_MAX) {
    const detail = `may not be more than ${SECRET_BYTES_MAX} bytes`;
    errors.push({ type: 'FieldValueTooLong', field: 'data', detail });
  }
  return errors;
}

function validateKeys(field: string, data: JsonObject): FieldError[] {
  return Object.keys(data)
    .filter((key) => key.length > KEY_LENGTH_MAX || !KEY_PATTERN.test(key))
    .map((key) => ({
      type: 'FieldValueInvalid',
      field: `${field}[${key}]`,
      badValue: key,
      detail:
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' " +
        `(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is ` +
        "'[-._a-zA-Z0-9]+')",
    }));
}

function validateSecretUpdate(secret: JsonObject, old: JsonObject): FieldError[] {
  const type = stringAt(secret, 'type');
  const changed: FieldError[] =
    type === stringAt(old, 'type')
      ? []
      : [
          {
            type: 'FieldValueInvalid',
            field: 'type',
            badValue: type,
            detail: 'field is immutable',
          },
        ];
  return [...changed, ...validateImmutable(secret, old, ['data'])];
}

function validateImmutable(
  object: JsonObject,
  old: JsonObject,
  fields: readonly string[],
): FieldError[] {
  if (old.immutable !== true) return [];
  const detail = 'field is immutable when `immutable` is set';
  const errors: FieldError[] =
    object.immutable === true ? [] : [{ type: 'FieldValueForbidden', field: 'immutable', detail }];
  for (const field of fields) {
    if (!isDeepStrictEqual(object[field], old[field])) {
      errors.push({ type: 'FieldValueForbidden', field, detail });
    }
  }
  return errors;
}
