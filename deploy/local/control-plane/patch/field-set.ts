/**
 * Sets of field paths, as server-side apply keeps them per manager, and their JSON form `fieldsV1`.
 * A path element is written as there: `f:name` (field), `k:{"type":"Ready"}` (item of a list map),
 * `v:"x"` (item of a set). Sets are immutable and share their parts.
 */
import { isJsonObject, type JsonObject, type JsonValue, setOwn } from '../json.ts';

/** A node of the tree: whether the path that leads here is in the set, and what lies below. */
export interface FieldSet {
  readonly member: boolean;
  readonly children: ReadonlyMap<string, FieldSet>;
}

export const EMPTY_SET: FieldSet = { member: false, children: new Map() };
export const LEAF_SET: FieldSet = { member: true, children: new Map() };

const SELF = '.';
/** Order of the kinds of path elements in `fieldsV1`. */
const KINDS = 'fkvi';

export function isEmptySet(set: FieldSet | undefined): boolean {
  return set === undefined || (!set.member && set.children.size === 0);
}

/** A set without the empty branches. */
export function fieldSet(member: boolean, children: Iterable<[string, FieldSet]>): FieldSet {
  return { member, children: new Map([...children].filter(([, child]) => !isEmptySet(child))) };
}

/** The paths of either set. */
export function unionSets(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmptySet(left)) return right;
  if (isEmptySet(right)) return left;
  const children = new Map(left.children);
  for (const [element, child] of right.children) {
    const other = children.get(element);
    children.set(element, other === undefined ? child : unionSets(other, child));
  }
  return { member: left.member || right.member, children };
}

/** The paths of `left` that are not in `right`; paths below those of `right` stay. */
export function subtractSet(left: FieldSet, right: FieldSet): FieldSet {
  if (isEmptySet(right)) return left;
  const children = [...left.children].map(([element, child]): [string, FieldSet] => {
    const other = right.children.get(element);
    return [element, other === undefined ? child : subtractSet(child, other)];
  });
  return fieldSet(left.member && !right.member, children);
}

/** The paths of both sets; a path below one of the other set is not in it. */
export function intersectSets(left: FieldSet, right: FieldSet): FieldSet {
  const children: [string, FieldSet][] = [];
  for (const [element, child] of left.children) {
    const other = right.children.get(element);
    if (other !== undefined) children.push([element, intersectSets(child, other)]);
  }
  return fieldSet(left.member && right.member, children);
}

export function sameSets(left: FieldSet, right: FieldSet): boolean {
  if (left === right) return true;
  if (left.member !== right.member || left.children.size !== right.children.size) return false;
  for (const [element, child] of left.children) {
    const other = right.children.get(element);
    if (other === undefined || !sameSets(child, other)) return false;
  }
  return true;
}

/** The set that `fieldsV1` describes; what is not of its form is ignored. */
export function readFieldsV1(value: JsonValue | undefined): FieldSet {
  if (!isJsonObject(value)) return EMPTY_SET;
  const children = Object.entries(value)
    .filter(([element]) => element !== SELF)
    .map(([element, child]): [string, FieldSet] => {
      const below = readFieldsV1(child);
      const isLeaf = isJsonObject(child) && Object.keys(child).length === 0;
      const hasSelf = isJsonObject(child) && Object.hasOwn(child, SELF);
      return [element, { member: isLeaf || hasSelf, children: below.children }];
    });
  return fieldSet(false, children);
}

/** The JSON form, elements in the order in which the API server writes them. */
export function writeFieldsV1(set: FieldSet): JsonObject {
  const result: JsonObject = {};
  if (set.member && set.children.size > 0) result[SELF] = {};
  for (const element of [...set.children.keys()].sort(compareElements)) {
    const child = set.children.get(element);
    if (child !== undefined) setOwn(result, element, writeFieldsV1(child));
  }
  return result;
}

/** All paths of the set as people read them: `.spec.conditions[type="Ready"].status`. */
export function listPaths(set: FieldSet, prefix = ''): string[] {
  const own = set.member ? [prefix] : [];
  const below = [...set.children.keys()].sort(compareElements).flatMap((element) => {
    const child = set.children.get(element);
    return child === undefined ? [] : listPaths(child, `${prefix}${renderElement(element)}`);
  });
  return [...own, ...below];
}

function renderElement(element: string): string {
  const content = element.slice(2);
  if (element.startsWith('f:')) return `.${content}`;
  if (!element.startsWith('k:')) return `[${element.startsWith('v:') ? '=' : ''}${content}]`;
  const keys: unknown = parseJson(content);
  if (typeof keys !== 'object' || keys === null) return `[${content}]`;
  const parts = Object.entries(keys).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return `[${parts.join(',')}]`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function compareElements(left: string, right: string): number {
  const byKind = KINDS.indexOf(left.charAt(0)) - KINDS.indexOf(right.charAt(0));
  if (byKind !== 0) return byKind;
  return left < right ? -1 : Number(left > right);
}
