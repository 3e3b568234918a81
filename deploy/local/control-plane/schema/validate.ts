/**
 * Structural validation: types, required fields, enums, bounds, patterns, formats, compositions,
 * list sets and maps. Messages are those of kube-openapi as the API server of Kubernetes 1.32
 * turns them into field errors. A value that an update does not touch is not judged again.
 */
import { isJsonObject, type JsonObject, type JsonValue, own, sameJson } from '../json.ts';
import {
  type FieldError,
  invalid,
  NO_FIELD,
  notSupported,
  required,
  tooLong,
  tooMany,
  typeInvalid,
} from './field-error.ts';
import { matchesFormat } from './formats.ts';
import { correlateItem, listDuplicates } from './list-items.ts';
import type { SchemaNode } from './schema-node.ts';

const INT32_MAX = 2 ** 31 - 1;

const patterns = new Map<string, RegExp | undefined>();
/** Patterns come from schemas, which are few; past this many the cache starts again. */
const PATTERNS_MAX = 4096;

/** All structural errors of a value; `old` is what it replaces, if anything. */
export function validateValue(
  value: JsonValue,
  old: JsonValue | undefined,
  node: SchemaNode,
  path = '',
): FieldError[] {
  if (old !== undefined && sameJson(value, old)) return [];
  if (value === null && node.nullable) return [];
  const typeErrors = checkType(value, node, path);
  const errors = [...typeErrors, ...checkCompositions(value, old, node, path)];
  if (typeErrors.length === 0) {
    if (typeof value === 'string') errors.push(...checkString(value, node, path));
    if (typeof value === 'number') errors.push(...checkNumber(value, node, path));
    if (Array.isArray(value)) errors.push(...checkArray(value, old, node, path));
  }
  errors.push(...checkEnum(value, node, path));
  if (typeErrors.length === 0 && isJsonObject(value)) {
    errors.push(...checkObject(value, old, node, path));
  }
  return errors;
}

/** The JSON type of a value, as schemas name it. */
export function typeName(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value;
}

function checkType(value: JsonValue, node: SchemaNode, path: string): FieldError[] {
  const actual = typeName(value);
  const wanted = node.intOrString ? ['integer', 'string'] : node.type;
  if (wanted === undefined) return [];
  const fits = Array.isArray(wanted)
    ? wanted.includes(actual)
    : actual === wanted || (wanted === 'number' && actual === 'integer');
  if (fits) return [];
  const detail = `${path} in body must be of type ${wanted}: ${JSON.stringify(actual)}`;
  return [typeInvalid(path, actual, detail)];
}

function checkString(value: string, node: SchemaNode, path: string): FieldError[] {
  const { raw } = node;
  const errors: FieldError[] = [];
  const length = [...value].length;
  if (typeof raw.maxLength === 'number' && length > raw.maxLength) {
    errors.push(tooLong(path, raw.maxLength));
  }
  if (typeof raw.minLength === 'number' && length < raw.minLength) {
    const detail = `${path} in body should be at least ${raw.minLength} chars long`;
    errors.push(invalid(path, value, detail));
  }
  if (typeof raw.pattern === 'string' && patternOf(raw.pattern)?.test(value) === false) {
    errors.push(invalid(path, value, `${path} in body should match '${raw.pattern}'`));
  }
  if (typeof raw.format === 'string' && !matchesFormat(raw.format, value)) {
    const detail = `${path} in body must be of type ${raw.format}: ${JSON.stringify(value)}`;
    errors.push(typeInvalid(path, value, detail));
  }
  return errors;
}

function checkNumber(value: number, node: SchemaNode, path: string): FieldError[] {
  const { raw } = node;
  const errors: FieldError[] = [];
  const refuse = (rule: string) => errors.push(invalid(path, value, `${path} in body ${rule}`));
  const maximum = raw.maximum ?? (raw.format === 'int32' ? INT32_MAX : undefined);
  const minimum = raw.minimum ?? (raw.format === 'int32' ? -INT32_MAX - 1 : undefined);
  if (typeof raw.multipleOf === 'number' && value % raw.multipleOf !== 0) {
    refuse(`should be a multiple of ${raw.multipleOf}`);
  }
  if (typeof maximum === 'number') {
    if (raw.exclusiveMaximum === true) {
      if (value >= maximum) refuse(`should be less than ${maximum}`);
    } else if (value > maximum) refuse(`should be less than or equal to ${maximum}`);
  }
  if (typeof minimum === 'number') {
    if (raw.exclusiveMinimum === true) {
      if (value <= minimum) refuse(`should be greater than ${minimum}`);
    } else if (value < minimum) refuse(`should be greater than or equal to ${minimum}`);
  }
  return errors;
}

function checkArray(
  list: readonly JsonValue[],
  old: JsonValue | undefined,
  node: SchemaNode,
  path: string,
): FieldError[] {
  const { raw, items } = node;
  const errors: FieldError[] = [];
  if (items !== undefined) {
    for (const [index, item] of list.entries()) {
      const before = correlateItem(item, old, node);
      errors.push(...validateValue(item, before, items, `${path}[${index}]`));
    }
  }
  if (typeof raw.minItems === 'number' && list.length < raw.minItems) {
    const detail = `${path} in body should have at least ${raw.minItems} items`;
    errors.push(invalid(path, list.length, detail));
  }
  if (typeof raw.maxItems === 'number' && list.length > raw.maxItems) {
    errors.push(tooMany(path, list.length, raw.maxItems));
  }
  if (raw.uniqueItems === true) {
    const set = { ...node, listType: 'set' as const };
    if (listDuplicates(list, set, path).length > 0) {
      errors.push(invalid(path, '', `${path} in body shouldn't contain duplicates`));
    }
  }
  return [...errors, ...listDuplicates(list, node, path)];
}

function checkEnum(value: JsonValue, node: SchemaNode, path: string): FieldError[] {
  const allowed = node.raw.enum;
  if (!Array.isArray(allowed) || allowed.some((item) => sameJson(item, value))) return [];
  return [notSupported(path, value, allowed)];
}

function checkObject(
  object: JsonObject,
  old: JsonValue | undefined,
  node: SchemaNode,
  path: string,
): FieldError[] {
  const { raw } = node;
  const count = Object.keys(object).length;
  if (typeof raw.minProperties === 'number' && count < raw.minProperties) {
    const detail = `${path} in body should have at least ${raw.minProperties} properties`;
    return [invalid(path, count, detail)];
  }
  if (typeof raw.maxProperties === 'number' && count > raw.maxProperties) {
    return [tooMany(path, count, raw.maxProperties)];
  }
  const errors: FieldError[] = [];
  for (const [key, item] of Object.entries(object)) {
    const child = node.properties.get(key) ?? node.additional;
    if (child === undefined) continue;
    const before = isJsonObject(old) ? own(old, key) : undefined;
    errors.push(...validateValue(item, before, child, childPath(path, key)));
  }
  const needed = node.embeddedResource ? [...node.required, 'apiVersion', 'kind'] : node.required;
  for (const key of new Set(needed)) {
    if (!Object.hasOwn(object, key)) errors.push(required(childPath(path, key)));
  }
  return errors;
}

function checkCompositions(
  value: JsonValue,
  old: JsonValue | undefined,
  node: SchemaNode,
  path: string,
): FieldError[] {
  const test = (part: SchemaNode) => validateValue(value, old, part, path);
  const refuse = (rule: string) => invalid(NO_FIELD, '', `${JSON.stringify(path)} must ${rule}`);
  const errors: FieldError[] = [];
  if (node.anyOf.length > 0) {
    const results = node.anyOf.map(test);
    if (results.every((result) => result.length > 0)) {
      errors.push(refuse('validate at least one schema (anyOf)'), ...fewest(results));
    }
  }
  if (node.oneOf.length > 0) {
    const results = node.oneOf.map(test);
    const valid = results.filter((result) => result.length === 0).length;
    const rule = 'validate one and only one schema (oneOf).';
    if (valid === 0) errors.push(refuse(`${rule} Found none valid`), ...fewest(results));
    if (valid > 1) errors.push(refuse(`${rule} Found ${valid} valid alternatives`));
  }
  if (node.allOf.length > 0) {
    const failed = node.allOf.map(test).filter((result) => result.length > 0);
    const none = failed.length === node.allOf.length ? '. None validated' : '';
    if (failed.length > 0) errors.push(...failed.flat());
    if (failed.length > 0) errors.push(refuse(`validate all the schemas (allOf)${none}`));
  }
  if (node.not !== undefined && test(node.not).length === 0) {
    errors.push(refuse('not validate the schema (not)'));
  }
  return errors;
}

function fewest(results: readonly FieldError[][]): FieldError[] {
  const [first = [], ...rest] = results;
  return rest.reduce((best, result) => (result.length < best.length ? result : best), first);
}

/** Patterns are Go's RE2; what JavaScript cannot compile is not checked. */
function patternOf(source: string): RegExp | undefined {
  if (patterns.has(source)) return patterns.get(source);
  if (patterns.size >= PATTERNS_MAX) patterns.clear();
  const compiled = compilePattern(source, 'u') ?? compilePattern(source, '');
  patterns.set(source, compiled);
  return compiled;
}

function compilePattern(source: string, flags: string): RegExp | undefined {
  try {
    return new RegExp(source, flags);
  } catch {
    return undefined;
  }
}

function childPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}
