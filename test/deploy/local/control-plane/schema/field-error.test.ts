import { describe, expect, it } from 'vitest';
import {
  duplicate,
  type FieldError,
  fieldErrorBody,
  forbidden,
  invalid,
  NO_FIELD,
  notSupported,
  renderFieldError,
  required,
  tooLong,
  tooMany,
  typeInvalid,
} from '#deploy/local/control-plane/schema/field-error.ts';

describe('field errors', () => {
  it.each<[FieldError, string]>([
    [required('spec.endpoint.host'), 'spec.endpoint.host: Required value'],
    [
      required('spec.provider', 'provider is required'),
      'spec.provider: Required value: provider is required',
    ],
    [invalid('spec.port', 0, 'too small'), 'spec.port: Invalid value: 0: too small'],
    [invalid('a', 1.5, ''), 'a: Invalid value: 1.5'],
    [invalid('a', true, 'x'), 'a: Invalid value: true: x'],
    [invalid('a', 'say "hi"', 'x'), 'a: Invalid value: "say \\"hi\\"": x'],
    [invalid(NO_FIELD, null, 'x'), '<nil>: Invalid value: "null": x'],
    [typeInvalid('a', 'string', 'x'), 'a: Invalid value: "string": x'],
    [forbidden('a', 'not here'), 'a: Forbidden: not here'],
    [tooLong('a', 63), 'a: Too long: may not be more than 63 bytes'],
    [tooMany('a', 3, 2), 'a: Too many: 3: must have at most 2 items'],
    [
      notSupported('spec.mode', 'X', ['Managed', 'External']),
      'spec.mode: Unsupported value: "X": supported values: "Managed", "External"',
    ],
    [notSupported('a', 3, [1, 2]), 'a: Unsupported value: 3: supported values: "1", "2"'],
    [
      duplicate('a[1]', { type: 'Ready', n: 1 }),
      'a[1]: Duplicate value: map[string]interface {}{"n":1, "type":"Ready"}',
    ],
    [
      duplicate('a[1]', [null, true]),
      'a[1]: Duplicate value: []interface {}{interface {}(nil), true}',
    ],
  ])('%# reads as the API server prints it', (error, text) => {
    expect(renderFieldError(error)).toBe(text);
    expect(`${error.field}: ${fieldErrorBody(error)}`).toBe(text);
  });
});
