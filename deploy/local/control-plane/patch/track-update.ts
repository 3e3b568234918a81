/** Ownership after an ordinary write (create, update, patch): whoever changed a field owns it. */
import { type JsonObject, objectOf, stringOf } from '../json.ts';
import type { SchemaNode } from '../schema/schema-node.ts';
import { EMPTY_SET, isEmptySet, subtractSet, unionSets } from './field-set.ts';
import { compareFields } from './field-walk.ts';
import {
  type ManagedEntry,
  ownableFields,
  readManagedFields,
  releaseFields,
  sameManager,
  type WriteScope,
  writeManagedFields,
} from './managed-fields.ts';

export interface TrackedUpdate extends WriteScope {
  /** The stored object; undefined for a create. */
  readonly before?: JsonObject | undefined;
  /** What is about to be stored; if it carries managedFields, these replace the stored ones. */
  readonly after: JsonObject;
  readonly manager: string;
  /** RFC 3339 time of the request. */
  readonly time: string;
  /** Root of the kind's schema. */
  readonly schema: SchemaNode;
}

/** The object with its `metadata.managedFields` brought up to date. */
export function trackUpdate(update: TrackedUpdate): JsonObject {
  const { before, after, manager, time, subresource } = update;
  const entries = startingEntries(before, after, subresource);
  const comparison = compareFields(before ?? {}, after, update.schema);
  const taken = ownableFields(unionSets(comparison.added, comparison.modified), update);
  const removed = ownableFields(comparison.removed, update);
  if (isEmptySet(taken) && isEmptySet(removed)) return writeManagedFields(after, entries);
  const apiVersion = stringOf(after.apiVersion);
  const self = { manager, operation: 'Update', apiVersion, subresource } as const;
  const mine = entries.find((entry) => sameManager(entry, self));
  const others = releaseFields(
    entries.filter((entry) => entry !== mine),
    unionSets(taken, removed),
  );
  const fields = unionSets(subtractSet(mine?.fields ?? EMPTY_SET, removed), taken);
  const kept = isEmptySet(fields) ? [] : [{ ...self, time: secondsOf(time), fields }];
  return writeManagedFields(after, [...others, ...kept]);
}

/**
 * Clients may edit managedFields themselves (kubectl migrates from client-side apply that way), a
 * list of one empty entry clears them, and an absent or empty list leaves the stored ones.
 */
function startingEntries(
  before: JsonObject | undefined,
  after: JsonObject,
  subresource: string,
): ManagedEntry[] {
  const sent = objectOf(after.metadata).managedFields;
  const isSent = Array.isArray(sent) && sent.length > 0 && subresource === '';
  return readManagedFields(isSent ? after : before);
}

/** Managed fields carry times in whole seconds. */
export function secondsOf(time: string): string {
  return time.replace(/\.\d+(?=Z|[+-])/, '');
}
