/**
 * Validation errors of single fields, worded as `k8s.io/apimachinery/pkg/util/validation/field`
 * of Kubernetes 1.32 words them: clients and people grep for these sentences.
 */
import { isJsonObject, type JsonValue } from '../json.ts';

/** The kinds of field errors, by the `reason` that a `Status` cause carries. */
export type FieldErrorType =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueForbidden'
  | 'FieldValueNotSupported'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueTypeInvalid'
  | 'FieldValueDuplicate';

/** One field that the API refuses. */
export interface FieldError {
  readonly type: FieldErrorType;
  /** Path such as `spec.endpoint.host` or `spec.items[0].name`. */
  readonly field: string;
  readonly detail: string;
  /** The offending value; absent where the message shows none. */
  readonly badValue?: JsonValue;
}

/** The field of an error that belongs to no path, as Go prints a nil path. */
export const NO_FIELD = '<nil>';

const TITLES: Record<FieldErrorType, string> = {
  FieldValueRequired: 'Required value',
  FieldValueInvalid: 'Invalid value',
  FieldValueForbidden: 'Forbidden',
  FieldValueNotSupported: 'Unsupported value',
  FieldValueTooLong: 'Too long',
  FieldValueTooMany: 'Too many',
  FieldValueTypeInvalid: 'Invalid value',
  FieldValueDuplicate: 'Duplicate value',
};

const WITHOUT_VALUE: ReadonlySet<FieldErrorType> = new Set([
  'FieldValueRequired',
  'FieldValueForbidden',
  'FieldValueTooLong',
] as const);

/** `field: body`, as `field.Error.Error()` prints it. */
export function renderFieldError(error: FieldError): string {
  return `${error.field}: ${fieldErrorBody(error)}`;
}

/** The message without the field, as it stands in `details.causes[].message` of a `Status`. */
export function fieldErrorBody(error: FieldError): string {
  const showsValue = error.badValue !== undefined && !WITHOUT_VALUE.has(error.type);
  const value = showsValue ? `: ${renderValue(error.badValue ?? null)}` : '';
  const detail = error.detail === '' ? '' : `: ${error.detail}`;
  return `${TITLES[error.type]}${value}${detail}`;
}

export function required(field: string, detail = ''): FieldError {
  return { type: 'FieldValueRequired', field, detail };
}

export function invalid(field: string, badValue: JsonValue, detail: string): FieldError {
  return { type: 'FieldValueInvalid', field, detail, badValue };
}

export function typeInvalid(field: string, badValue: JsonValue, detail: string): FieldError {
  return { type: 'FieldValueTypeInvalid', field, detail, badValue };
}

export function forbidden(field: string, detail: string): FieldError {
  return { type: 'FieldValueForbidden', field, detail };
}

export function duplicate(field: string, badValue: JsonValue): FieldError {
  return { type: 'FieldValueDuplicate', field, detail: '', badValue };
}

export function notSupported(
  field: string,
  badValue: JsonValue,
  supported: readonly JsonValue[],
): FieldError {
  const values = supported.map((value) =>
    JSON.stringify(typeof value === 'string' ? value : JSON.stringify(value)),
  );
  const detail = values.length === 0 ? '' : `supported values: ${values.join(', ')}`;
  return { type: 'FieldValueNotSupported', field, detail, badValue };
}

export function tooLong(field: string, maxBytes: number): FieldError {
  return { type: 'FieldValueTooLong', field, detail: `may not be more than ${maxBytes} bytes` };
}

export function tooMany(field: string, actual: number, max: number): FieldError {
  const detail = `must have at most ${max} items`;
  return { type: 'FieldValueTooMany', field, detail, badValue: actual };
}

/** Go's `%v` for numbers and booleans, `%q` for strings, `%#v` for the rest. */
function renderValue(value: JsonValue): string {
  if (value === null) return '"null"';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'object') return goSyntax(value);
  return String(value);
}

function goSyntax(value: JsonValue): string {
  if (value === null) return 'interface {}(nil)';
  if (Array.isArray(value)) return `[]interface {}{${value.map(goSyntax).join(', ')}}`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const entries = Object.entries(value)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${goSyntax(item)}`);
  return `map[string]interface {}{${entries.join(', ')}}`;
}
