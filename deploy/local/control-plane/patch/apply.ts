/**
 * Server-side apply: merges a configuration into the live object, takes out what its manager no
 * longer applies, and keeps the books on who owns which field. Follows structured-merge-diff.
 */
import { type JsonObject, objectOf, stringOf } from '../json.ts';
import type { SchemaNode } from '../schema/schema-node.ts';
import { typedProblems } from './applied-config.ts';
import { type Conflict, findConflicts } from './conflicts.ts';
import { EMPTY_SET, isEmptySet, sameSets, subtractSet, unionSets } from './field-set.ts';
import { type Comparison, compareFields, fieldsOf } from './field-walk.ts';
import { inheritedFields, withLastApplied } from './last-applied.ts';
import {
  type ManagedEntry,
  ownableFields,
  readManagedFields,
  releaseFields,
  sameManager,
  type WriteScope,
  writeManagedFields,
} from './managed-fields.ts';
import { PatchError } from './patch-error.ts';
import { secondsOf } from './track-update.ts';
import { mergeTyped, removeUnowned } from './typed-merge.ts';

export interface ApplyRequest extends WriteScope {
  /** The stored object; undefined if the apply creates it. */
  readonly live?: JsonObject | undefined;
  /** The configuration, with apiVersion, kind and metadata.name. */
  readonly applied: JsonObject;
  readonly manager: string;
  /** Takes fields over from other managers instead of reporting conflicts. */
  readonly force: boolean;
  /** RFC 3339 time of the request. */
  readonly time: string;
  /** Root of the kind's schema. */
  readonly schema: SchemaNode;
}

export interface ApplyResult {
  /** The object to store; the live one, untouched, if there are conflicts. */
  readonly object: JsonObject;
  readonly conflicts: readonly Conflict[];
}

/** Metadata that the server writes: configurations that carry it mean nothing by it. */
const SERVER_METADATA: ReadonlySet<string> = new Set([
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
  'resourceVersion',
  'selfLink',
  'uid',
]);

/** Applies a configuration; throws PatchError if it is not one for this schema. */
export function applyPatch(request: ApplyRequest): ApplyResult {
  const { live, schema, force } = request;
  const applied = configurationOf(request);
  const before = live ?? {};
  const entries = readManagedFields(live);
  const self = selfOf(request);
  const mine = entries.find((entry) => sameManager(entry, self));
  const others = entries.filter((entry) => entry !== mine);
  const fields = fieldsOf(applied, schema);
  const set = ownableFields(fields, request);

  const merged = mergeTyped(before, applied, schema);
  const owned = others.map((entry) => entry.fields).reduce(unionSets, fields);
  const object = removeUnowned(merged, mine?.fields ?? EMPTY_SET, owned, schema);
  const comparison = compareFields(before, object, schema);
  const changed = ownableFields(unionSets(comparison.added, comparison.modified), request);

  const conflicts = force
    ? []
    : findConflicts(others, subtractSet(changed, inheritedFields(request)));
  if (conflicts.length > 0) return { object: before, conflicts };
  const released = unionSets(changed, ownableFields(comparison.removed, request));
  const isNoop = mine !== undefined && sameSets(mine.fields, set) && isSame(comparison);
  const time = isNoop ? mine.time : secondsOf(request.time);
  const kept: ManagedEntry[] = isEmptySet(set) ? [] : [{ ...self, time, fields: set }];
  const next = [...releaseFields(others, released), ...kept];
  return { object: withLastApplied(writeManagedFields(object, next), request), conflicts };
}

function selfOf({ manager, applied, subresource }: ApplyRequest) {
  const apiVersion = stringOf(applied.apiVersion);
  return { manager, operation: 'Apply', apiVersion, subresource } as const;
}

/** The part of what was sent that this request may write. */
function configurationOf(request: ApplyRequest): JsonObject {
  const { applied, manager, schema } = request;
  if (manager === '')
    throw new PatchError('unprocessable', 'fieldManager: is required for apply patch');
  const metadata = objectOf(applied.metadata);
  const sentManaged = metadata.managedFields;
  if (Array.isArray(sentManaged) && sentManaged.length > 0) {
    throw new PatchError('malformed', 'metadata.managedFields must be nil');
  }
  const problems = typedProblems(applied, schema);
  if (problems.length > 0) {
    const message = `failed to create typed patch object (${identity(applied)}): ${problems.join('\n')}`;
    throw new PatchError('untyped', message);
  }
  const meaningful = Object.entries(metadata).filter(
    ([key]) => !SERVER_METADATA.has(key) && key !== 'managedFields',
  );
  return restrict({ ...applied, metadata: Object.fromEntries(meaningful) }, request);
}

function restrict(applied: JsonObject, scope: WriteScope): JsonObject {
  const { status, ...main } = applied;
  if (scope.subresource === 'status') {
    const { apiVersion = '', kind = '' } = applied;
    const { name = '', namespace } = objectOf(applied.metadata);
    const metadata = namespace === undefined ? { name } : { name, namespace };
    return { apiVersion, kind, metadata, ...(status !== undefined && { status }) };
  }
  return scope.statusSubresource ? main : applied;
}

/** `namespace/name; group/version, Kind=kind`, as the API server names what it cannot type. */
function identity(applied: JsonObject): string {
  const { name = '', namespace = '' } = objectOf(applied.metadata);
  const version = String(applied.apiVersion ?? '');
  const groupVersion = version.includes('/') ? version : `/${version}`;
  return `${namespace}/${name}; ${groupVersion}, Kind=${applied.kind ?? ''}`;
}

function isSame({ added, modified, removed }: Comparison): boolean {
  return isEmptySet(added) && isEmptySet(modified) && isEmptySet(removed);
}
