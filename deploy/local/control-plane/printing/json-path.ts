/**
 * The JSON path of printer columns (`client-go/util/jsonpath`, the part that a CRD may use):
 * fields, quoted fields, indexes, slices, `*`, `..`, unions and filters such as
 * `.status.conditions[?(@.type=="Ready")].reason`. Own code: the libraries for JSON path speak
 * another dialect, and some evaluate filters as JavaScript.
 */
import { isJsonObject, type JsonValue, own, sameJson } from '../json.ts';

/** Finds the values at a path; missing fields find nothing. */
export type JsonPath = (root: JsonValue) => JsonValue[];

type Step = (values: JsonValue[]) => JsonValue[];

const LENGTH_MAX = 4096;
/** Most values that a step finds: repeated `..`, `*` and unions multiply them. */
const VALUES_MAX = 100_000;
const OPERATORS = ['==', '!=', '<=', '>=', '<', '>'] as const;
type Operator = (typeof OPERATORS)[number];

/** Compiles a path; throws an Error that names what is wrong with it. */
export function compileJsonPath(path: string): JsonPath {
  if (path.length > LENGTH_MAX) throw new Error(`JSON path longer than ${LENGTH_MAX}`);
  const source = /^\{(.*)\}$/s.exec(path)?.[1] ?? path;
  const steps = parseSteps(source);
  return (root) => steps.reduce((values, step) => step(values), [root]);
}

function parseSteps(source: string): Step[] {
  const steps: Step[] = [];
  let rest = /^[$@]/.test(source) ? source.slice(1) : source;
  while (rest !== '') {
    const bracket = rest.startsWith('[') ? bracketContent(rest) : undefined;
    if (bracket !== undefined) {
      steps.push(bracketStep(bracket));
      rest = rest.slice(bracket.length + 2);
      continue;
    }
    const match = /^(\.\.?|(?=[^.[]))((?:\\.|[^.[\]\\])*)/s.exec(rest);
    const [token = '', dots = '', name = ''] = match ?? [];
    if (token === '') throw new Error(`unexpected ${JSON.stringify(rest)} in JSON path`);
    if (dots === '..') steps.push((values) => collect(values, descendants));
    if (name !== '') steps.push(fieldStep(name.replace(/\\(.)/gs, '$1')));
    else if (dots === '.' && token === rest && source !== '.') {
      throw new Error('JSON path ends in a dot');
    }
    rest = rest.slice(token.length);
  }
  return steps;
}

/** What stands between the bracket that opens `text` and the one that closes it. */
function bracketContent(text: string): string {
  let quote = '';
  let depth = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text.charAt(index);
    if (character === '\\') index++;
    else if (quote !== '') quote = character === quote ? '' : quote;
    else if (character === '"' || character === "'") quote = character;
    else if (character === '[') depth++;
    else if (character === ']' && --depth === 0) return text.slice(1, index);
  }
  throw new Error('unterminated array in JSON path');
}

function bracketStep(content: string): Step {
  const filter = /^\?\((.*)\)$/s.exec(content)?.[1];
  if (filter !== undefined) return filterStep(filter);
  if (content === '*') return (values) => collect(values, childrenOf);
  const slice = /^(-?\d*):(-?\d*)(?::(-?\d*))?$/.exec(content);
  if (slice !== null) return sliceStep(slice);
  const parts = splitUnion(content).map(unionStep);
  return (values) => collect(parts, (part) => part(values));
}

function unionStep(part: string): Step {
  const quoted = unquote(part);
  if (quoted !== undefined) return fieldStep(quoted);
  if (!/^-?\d+$/.test(part)) throw new Error(`invalid array index ${part} in JSON path`);
  const index = Number(part);
  return (values) =>
    values.flatMap((value) => {
      const item = Array.isArray(value) ? value.at(index) : undefined;
      return item === undefined ? [] : [item];
    });
}

function splitUnion(content: string): string[] {
  const parts = content.match(/'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^,]+/gs) ?? [];
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

function sliceStep([, start = '', end = '', step = '']: RegExpExecArray): Step {
  const stride = step === '' ? 1 : Number(step);
  if (!(stride > 0)) throw new Error('the step of a slice in a JSON path is at least 1');
  return (values) =>
    collect(values, (value) => {
      if (!Array.isArray(value)) return [];
      const to = end === '' ? value.length : Number(end);
      const items = value.slice(start === '' ? 0 : Number(start), to);
      return items.filter((_item, index) => index % stride === 0);
    });
}

function fieldStep(name: string): Step {
  if (name === '*') return (values) => collect(values, childrenOf);
  return (values) =>
    values.flatMap((value) => {
      const found = isJsonObject(value) ? own(value, name) : undefined;
      return found === undefined ? [] : [found];
    });
}

function filterStep(expression: string): Step {
  const operator = findOperator(expression);
  if (operator === undefined) {
    const exists = operand(expression);
    return (values) => collect(values, childrenOf).filter((item) => exists(item) !== undefined);
  }
  const [name, at] = operator;
  const left = operand(expression.slice(0, at));
  const right = operand(expression.slice(at + name.length));
  return (values) =>
    collect(values, childrenOf).filter((item) => compare(left(item), right(item), name));
}

/** The first comparison outside quotes. */
function findOperator(expression: string): [Operator, number] | undefined {
  let quote = '';
  for (let index = 0; index < expression.length; index++) {
    const character = expression.charAt(index);
    if (character === '\\') index++;
    else if (quote !== '') quote = character === quote ? '' : quote;
    else if (character === '"' || character === "'") quote = character;
    else {
      const found = OPERATORS.find((operator) => expression.startsWith(operator, index));
      if (found !== undefined) return [found, index];
    }
  }
  return undefined;
}

function operand(text: string): (item: JsonValue) => JsonValue | undefined {
  const trimmed = text.trim();
  if (/^[@$]/.test(trimmed)) {
    const path = compileJsonPath(trimmed);
    return (item) => path(item)[0];
  }
  const quoted = unquote(trimmed);
  if (quoted !== undefined) return () => quoted;
  if (trimmed === 'true' || trimmed === 'false') return () => trimmed === 'true';
  const number = Number(trimmed);
  if (trimmed === '' || Number.isNaN(number)) {
    throw new Error(`cannot read ${JSON.stringify(trimmed)} in the filter of a JSON path`);
  }
  return () => number;
}

function compare(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
  operator: Operator,
): boolean {
  if (left === undefined || right === undefined) return false;
  if (operator === '==') return sameJson(left, right);
  if (operator === '!=') return !sameJson(left, right);
  if (typeof left !== typeof right) return false;
  if (typeof left !== 'number' && typeof left !== 'string') return false;
  const order = compareOrdered(left, right);
  return { '<': order < 0, '<=': order <= 0, '>': order > 0, '>=': order >= 0 }[operator];
}

function compareOrdered(left: number | string, right: JsonValue): number {
  if (typeof right !== 'number' && typeof right !== 'string') return Number.NaN;
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

function unquote(text: string): string | undefined {
  const match = /^(['"])(.*)\1$/s.exec(text);
  return match?.[2]?.replace(/\\(.)/gs, '$1');
}

/** What each of the sources yields, as far as the bound. */
function collect<T>(sources: readonly T[], expand: (source: T) => JsonValue[]): JsonValue[] {
  const found: JsonValue[] = [];
  for (const source of sources) {
    for (const value of expand(source)) {
      if (found.length >= VALUES_MAX) return found;
      found.push(value);
    }
  }
  return found;
}

function childrenOf(value: JsonValue): JsonValue[] {
  if (Array.isArray(value)) return value;
  return isJsonObject(value) ? Object.values(value) : [];
}

function descendants(value: JsonValue): JsonValue[] {
  const found: JsonValue[] = [value];
  for (let index = 0; index < found.length && found.length < VALUES_MAX; index++) {
    for (const child of childrenOf(found[index] ?? null)) found.push(child);
  }
  return found;
}
