/**
 * The CEL rules of one schema: compiled once, evaluated against a value and the value that it
 * replaces. Errors are worded and placed as Kubernetes 1.32 does it: the bad value that a failed
 * rule shows is the *type* of the field (`Invalid value: "string": mode is immutable`); only
 * later releases show the value itself.
 */
import { type ASTNode, EvaluationError, Optional, type ParseResult } from '@marcbachmann/cel-js';
import { isJsonObject, type JsonObject, type JsonValue, own, sameJson } from '../../json.ts';
import { duplicate, type FieldError, forbidden, invalid, required } from '../field-error.ts';
import { correlateItem } from '../list-items.ts';
import type { SchemaNode, ValidationRule } from '../schema-node.ts';
import { celEnvironment } from './environment.ts';
import { type CelValue, resourceToCel, toCel } from './values.ts';

interface CompiledRule {
  readonly source: ValidationRule;
  readonly program: ParseResult | undefined;
  readonly compileError: string | undefined;
  readonly messageProgram: ParseResult | undefined;
  readonly usesOldSelf: boolean;
}

interface Activation {
  readonly self: CelValue;
  readonly oldSelf: CelValue | undefined | Optional;
}

const compiledRules = new WeakMap<SchemaNode, readonly CompiledRule[]>();

/** Evaluates every rule at and below a resource's root. */
export function validateRules(
  object: JsonObject,
  old: JsonObject | undefined,
  root: SchemaNode,
): FieldError[] {
  const errors = evaluateNode(object, old, root, '', resourceToCel);
  return [...errors, ...descend(object, old, root, '')];
}

/** Rules that do not compile, by the path of their schema; empty if all do. */
export function listRuleProblems(node: SchemaNode, path = ''): FieldError[] {
  return listProblems(node, path, new Set());
}

function listProblems(node: SchemaNode, path: string, seen: Set<SchemaNode>): FieldError[] {
  if (seen.has(node)) return [];
  seen.add(node);
  const own = rulesOf(node).flatMap((rule, index) =>
    rule.compileError === undefined
      ? []
      : [
          invalid(
            `${path}.x-kubernetes-validations[${index}].rule`,
            rule.source.rule,
            `compilation failed: ${rule.compileError}`,
          ),
        ],
  );
  const children: [string, SchemaNode][] = [...node.properties].map(([name, child]) => [
    `${path}.properties[${name}]`,
    child,
  ]);
  if (node.items !== undefined) children.push([`${path}.items`, node.items]);
  if (node.additional !== undefined)
    children.push([`${path}.additionalProperties`, node.additional]);
  return [...own, ...children.flatMap(([at, child]) => listProblems(child, at, seen))];
}

function validateAt(
  value: JsonValue,
  old: JsonValue | undefined,
  node: SchemaNode,
  path: string,
): FieldError[] {
  // Rules guard values, not null: that a nullable field is null concerns the schema around it.
  if (value === null) return [];
  return [...evaluateNode(value, old, node, path, toCel), ...descend(value, old, node, path)];
}

function descend(
  value: JsonValue,
  old: JsonValue | undefined,
  node: SchemaNode,
  path: string,
): FieldError[] {
  if (Array.isArray(value)) {
    const items = node.items;
    if (items === undefined) return [];
    return value.flatMap((item, index) =>
      validateAt(item, correlateItem(item, old, node), items, `${path}[${index}]`),
    );
  }
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const property = node.properties.get(key);
    const child = property ?? node.additional;
    if (child === undefined) return [];
    const before = isJsonObject(old) ? own(old, key) : undefined;
    return validateAt(item, before, child, childPath(path, key, property !== undefined));
  });
}

function evaluateNode<T extends JsonValue>(
  value: T,
  old: JsonValue | undefined,
  node: SchemaNode,
  path: string,
  convert: (value: T, node: SchemaNode) => CelValue,
): FieldError[] {
  const nested = node.allOf.flatMap((part) =>
    part.rules.length === 0 ? [] : evaluateNode(value, old, part, path, convert),
  );
  const rules = rulesOf(node);
  if (rules.length === 0) return nested;
  const self = convert(value, node);
  const before = old === undefined || old === null ? undefined : toCel(old, node);
  // An error that was there before the update does not block it (ratcheting).
  const unchanged = sameJson(value, old);
  const own = rules.flatMap((rule) => {
    if (unchanged && !rule.usesOldSelf) return [];
    return evaluateRule(rule, self, before, node, path);
  });
  return [...own, ...nested];
}

function evaluateRule(
  rule: CompiledRule,
  self: CelValue,
  before: CelValue | undefined,
  node: SchemaNode,
  path: string,
): FieldError[] {
  const { source } = rule;
  const typeName = node.type ?? '';
  if (rule.program === undefined) {
    if (rule.compileError === undefined) return [];
    return [invalid(path, typeName, `rule compile error: ${rule.compileError}`)];
  }
  // A transition rule needs a value to compare with, unless it asks for an optional one.
  if (rule.usesOldSelf && before === undefined && !source.optionalOldSelf) return [];
  const activation: Activation = {
    self,
    oldSelf: source.optionalOldSelf ? toOptional(before) : before,
  };
  try {
    if (rule.program(activation) === true) return [];
  } catch (error) {
    const summary = describe(error);
    const text = source.message === '' ? source.rule : source.message;
    return [invalid(path, typeName, `${summary} evaluating rule: ${text}`)];
  }
  const target = `${path}${fieldSuffix(source.fieldPath, path)}`;
  return [errorForReason(source.reason, target, typeName, messageOf(rule, activation))];
}

function messageOf(rule: CompiledRule, activation: Activation): string {
  const { source } = rule;
  if (rule.messageProgram !== undefined) {
    try {
      const text: unknown = rule.messageProgram(activation);
      if (typeof text === 'string' && text.trim() !== '' && !text.includes('\n')) return text;
    } catch {
      // The fixed message stands in for one that cannot be computed.
    }
  }
  return source.message === '' ? `failed rule: ${source.rule}` : source.message;
}

function errorForReason(
  reason: string,
  field: string,
  typeName: string,
  detail: string,
): FieldError {
  switch (reason) {
    case 'FieldValueForbidden':
      return forbidden(field, detail);
    case 'FieldValueRequired':
      return required(field, detail);
    case 'FieldValueDuplicate':
      return duplicate(field, typeName);
    default:
      return invalid(field, typeName, detail);
  }
}

function rulesOf(node: SchemaNode): readonly CompiledRule[] {
  const known = compiledRules.get(node);
  if (known !== undefined) return known;
  const rules = node.rules.map(compileRule);
  compiledRules.set(node, rules);
  return rules;
}

function compileRule(source: ValidationRule): CompiledRule {
  if (source.rule === '') {
    const nothing = { program: undefined, compileError: undefined, messageProgram: undefined };
    return { source, usesOldSelf: false, ...nothing };
  }
  const main = parse(source.rule);
  const message = source.messageExpression === '' ? undefined : parse(source.messageExpression);
  return {
    source,
    program: main.program,
    compileError: main.error ?? message?.error,
    messageProgram: message?.program,
    usesOldSelf: main.program !== undefined && mentions(main.program.ast, 'oldSelf'),
  };
}

function parse(expression: string): { program?: ParseResult; error?: string } {
  try {
    const program = celEnvironment.parse(expression);
    const check = program.check();
    if (!check.valid) return { error: describe(check.error) };
    return { program };
  } catch (error) {
    return { error: describe(error) };
  }
}

/** Whether an expression refers to a variable. */
function mentions(value: unknown, name: string): boolean {
  if (Array.isArray(value)) return value.some((item) => mentions(item, name));
  if (!isAst(value)) return false;
  return value.op === 'id' ? value.args === name : mentions(value.args, name);
}

function isAst(value: unknown): value is ASTNode {
  return typeof value === 'object' && value !== null && 'op' in value && 'args' in value;
}

function toOptional(value: CelValue | undefined): Optional {
  return value === undefined ? Optional.none() : Optional.of(value);
}

function describe(error: unknown): string {
  if (error instanceof EvaluationError) {
    return error.summary.replace(/^No such key/, 'no such key');
  }
  if (error instanceof Error && 'summary' in error) return String(error.summary);
  return error instanceof Error ? error.message : String(error);
}

/** `.a['b.c']` of a rule's fieldPath, as the path of a field error continues. */
function fieldSuffix(fieldPath: string, path: string): string {
  const dotted = fieldPath.replace(
    /\['((?:[^'\\]|\\.)*)'\]/g,
    (_match, name: string) => `[${name}]`,
  );
  return path === '' ? dotted.replace(/^\./, '') : dotted;
}

function childPath(path: string, key: string, isProperty: boolean): string {
  if (!isProperty) return `${path}[${key}]`;
  return path === '' ? key : `${path}.${key}`;
}
