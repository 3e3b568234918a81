/** Which fields an object has, and which differ between two objects, as sets of paths. */
import { canonicalJson, isJsonObject, type JsonValue, sameJson } from '../json.ts';
import { itemKeys } from '../schema/list-items.ts';
import { anyNode, type SchemaNode } from '../schema/schema-node.ts';
import { EMPTY_SET, type FieldSet, fieldSet, LEAF_SET } from './field-set.ts';

/** A field or item of a value that is owned part by part. */
export interface Part {
  readonly element: string;
  readonly value: JsonValue;
  readonly node: SchemaNode;
  /** A field that the schema names, as opposed to an item or an entry of a map. */
  readonly named: boolean;
}

/** What an update does to the fields of an object. */
export interface Comparison {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

const ANY = anyNode({});
const NOTHING: Comparison = { added: EMPTY_SET, modified: EMPTY_SET, removed: EMPTY_SET };

/** The parts of a value; undefined for scalars, atomic lists and atomic maps, owned as a whole. */
export function partsOf(value: JsonValue, node: SchemaNode): Part[] | undefined {
  if (isJsonObject(value)) {
    if (node.atomicMap) return undefined;
    return Object.entries(value).map(([key, item]) => ({
      element: `f:${key}`,
      value: item,
      node: node.properties.get(key) ?? node.additional ?? ANY,
      named: node.properties.has(key),
    }));
  }
  if (!Array.isArray(value) || node.listType === 'atomic') return undefined;
  return value.map((item) => ({
    element: itemElement(item, node),
    value: item,
    node: node.items ?? ANY,
    named: false,
  }));
}

/** The path element of a list item. */
export function itemElement(item: JsonValue, node: SchemaNode): string {
  const keys = node.listType === 'map' ? itemKeys(item, node) : undefined;
  return keys === undefined ? `v:${canonicalJson(item)}` : `k:${canonicalJson(keys)}`;
}

/** The fields that a configuration sets, which its applier comes to own. */
export function fieldsOf(value: JsonValue, node: SchemaNode): FieldSet {
  const parts = partsOf(value, node);
  if (parts === undefined) return LEAF_SET;
  const isList = Array.isArray(value);
  const children = parts.map((part): [string, FieldSet] => {
    const below = fieldsOf(part.value, part.node);
    // A field of a struct is not owned itself, only what is set below it.
    const isMember = isList || !part.named || isEmptyObject(part.value) || below.member;
    return [part.element, { member: isMember, children: below.children }];
  });
  return fieldSet(false, children);
}

/** Compares two versions of an object. */
export function compareFields(before: JsonValue, after: JsonValue, node: SchemaNode): Comparison {
  if (before === after) return NOTHING;
  const oldParts = partsOf(before, node);
  const newParts = partsOf(after, node);
  if (oldParts === undefined && newParts === undefined) {
    return sameJson(before, after) ? NOTHING : { ...NOTHING, modified: LEAF_SET };
  }
  const shapeChanged =
    oldParts === undefined ||
    newParts === undefined ||
    Array.isArray(before) !== Array.isArray(after);
  const comparison = compareParts(oldParts ?? [], newParts ?? []);
  if (!shapeChanged) return comparison;
  return { ...comparison, modified: { ...comparison.modified, member: true } };
}

function compareParts(oldParts: readonly Part[], newParts: readonly Part[]): Comparison {
  const added: [string, FieldSet][] = [];
  const modified: [string, FieldSet][] = [];
  const removed: [string, FieldSet][] = [];
  const remaining = new Map(oldParts.map((part) => [part.element, part]));
  for (const part of newParts) {
    const old = remaining.get(part.element);
    if (old === undefined) {
      added.push([part.element, everyField(part.value, part.node)]);
      continue;
    }
    remaining.delete(part.element);
    const nested = compareFields(old.value, part.value, part.node);
    added.push([part.element, nested.added]);
    modified.push([part.element, nested.modified]);
    removed.push([part.element, nested.removed]);
  }
  for (const part of remaining.values()) {
    removed.push([part.element, everyField(part.value, part.node)]);
  }
  return {
    added: fieldSet(false, added),
    modified: fieldSet(false, modified),
    removed: fieldSet(false, removed),
  };
}

/** The path of a value and all paths below it. */
function everyField(value: JsonValue, node: SchemaNode): FieldSet {
  const parts = partsOf(value, node) ?? [];
  const children = parts.map((part): [string, FieldSet] => [
    part.element,
    everyField(part.value, part.node),
  ]);
  return fieldSet(true, children);
}

function isEmptyObject(value: JsonValue): boolean {
  return isJsonObject(value) && Object.keys(value).length === 0;
}
