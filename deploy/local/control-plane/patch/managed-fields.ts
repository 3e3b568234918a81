/** `metadata.managedFields`: who owns which fields of an object, read and written. */
import { type JsonObject, objectOf, objects, stringOf } from '../json.ts';
import {
  EMPTY_SET,
  type FieldSet,
  isEmptySet,
  readFieldsV1,
  subtractSet,
  unionSets,
  writeFieldsV1,
} from './field-set.ts';

export type Operation = 'Apply' | 'Update';

/** Identity of a manager: the same name may apply, update, and own parts of a subresource. */
export interface ManagerId {
  readonly manager: string;
  readonly operation: Operation;
  readonly apiVersion: string;
  /** Empty for the main resource. */
  readonly subresource: string;
}

/** One entry of the list. */
export interface ManagedEntry extends ManagerId {
  /** RFC 3339, second precision; empty if unknown. */
  readonly time: string;
  readonly fields: FieldSet;
}

/** As the API server: further updaters are merged into one entry, oldest first. */
const UPDATE_ENTRIES_MAX = 10;
const MERGED_MANAGER = 'ancient-changes';

/** Fields that nobody owns: they name the object, or the server writes them. */
const NEVER_OWNED = readFieldsV1({
  'f:apiVersion': {},
  'f:kind': {},
  'f:metadata': {
    '.': {},
    'f:name': {},
    'f:namespace': {},
    'f:creationTimestamp': {},
    'f:selfLink': {},
    'f:uid': {},
    'f:clusterName': {},
    'f:generation': {},
    'f:managedFields': {},
    'f:resourceVersion': {},
  },
});

/** Which part of an object a request may write. */
export interface WriteScope {
  /** Subresource of the request, or empty. */
  readonly subresource: string;
  /** Whether the kind keeps its status apart: main writes then leave it alone. */
  readonly statusSubresource: boolean;
}

/** The part of a set that can be owned by a request of this scope. */
export function ownableFields(set: FieldSet, scope: WriteScope): FieldSet {
  const rest = subtractSet(set, NEVER_OWNED);
  if (scope.subresource === 'status') {
    const status = rest.children.get('f:status');
    return status === undefined
      ? EMPTY_SET
      : { member: false, children: new Map([['f:status', status]]) };
  }
  if (!scope.statusSubresource) return rest;
  const children = [...rest.children].filter(([element]) => element !== 'f:status');
  return { member: false, children: new Map(children) };
}

/** Whether two entries are those of one manager, whose fields are kept together. */
export function sameManager(left: ManagerId, right: ManagerId): boolean {
  return (
    left.manager === right.manager &&
    left.operation === right.operation &&
    left.subresource === right.subresource &&
    // An applier stays the same one when it moves to another version.
    (left.operation === 'Apply' || left.apiVersion === right.apiVersion)
  );
}

/** The entries of an object; malformed ones are dropped. */
export function readManagedFields(object: JsonObject | undefined): ManagedEntry[] {
  return objects(objectOf(object?.metadata).managedFields).flatMap((entry) => {
    const { manager, operation, apiVersion, subresource, time, fieldsV1 } = entry;
    if (operation !== 'Apply' && operation !== 'Update') return [];
    return [
      {
        manager: stringOf(manager),
        operation,
        apiVersion: stringOf(apiVersion),
        subresource: stringOf(subresource),
        time: stringOf(time),
        fields: readFieldsV1(fieldsV1),
      },
    ];
  });
}

/** A copy of the object that carries these entries; none leaves no `managedFields` at all. */
export function writeManagedFields(
  object: JsonObject,
  entries: readonly ManagedEntry[],
): JsonObject {
  const { managedFields: _replaced, ...metadata } = objectOf(object.metadata);
  const list = capped(entries).sort(compareEntries).map(writeEntry);
  return {
    ...object,
    metadata: list.length === 0 ? metadata : { ...metadata, managedFields: list },
  };
}

/** Takes fields away from every entry but one; empty entries vanish. */
export function releaseFields(
  entries: readonly ManagedEntry[],
  released: FieldSet,
): ManagedEntry[] {
  return entries
    .map((entry) => ({ ...entry, fields: subtractSet(entry.fields, released) }))
    .filter((entry) => !isEmptySet(entry.fields));
}

function writeEntry(entry: ManagedEntry): JsonObject {
  return {
    apiVersion: entry.apiVersion,
    fieldsType: 'FieldsV1',
    fieldsV1: writeFieldsV1(entry.fields),
    manager: entry.manager,
    operation: entry.operation,
    ...(entry.subresource !== '' && { subresource: entry.subresource }),
    ...(entry.time !== '' && { time: entry.time }),
  };
}

function capped(entries: readonly ManagedEntry[]): ManagedEntry[] {
  const updates = entries
    .filter((entry) => entry.operation === 'Update')
    .sort((left, right) => compareText(left.time, right.time));
  const surplus = updates.length - UPDATE_ENTRIES_MAX;
  const oldest = surplus > 0 ? updates.slice(0, surplus + 1) : [];
  const [first] = oldest;
  if (first === undefined) return [...entries];
  const merged: ManagedEntry = {
    ...first,
    manager: MERGED_MANAGER,
    subresource: '',
    time: oldest.at(-1)?.time ?? first.time,
    fields: oldest.map((entry) => entry.fields).reduce(unionSets, EMPTY_SET),
  };
  return [...entries.filter((entry) => !oldest.includes(entry)), merged];
}

/** Appliers first, then by time, manager, version and subresource, as the API server sorts. */
function compareEntries(left: ManagedEntry, right: ManagedEntry): number {
  return (
    compareText(left.operation, right.operation) ||
    compareText(left.time, right.time) ||
    compareText(left.manager, right.manager) ||
    compareText(left.apiVersion, right.apiVersion) ||
    compareText(left.subresource, right.subresource)
  );
}

function compareText(left: string, right: string): number {
  return left < right ? -1 : Number(left > right);
}
