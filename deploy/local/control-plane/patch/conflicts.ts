/** Conflicts of server-side apply, worded as the API server words them. */
import type { JsonObject } from '../json.ts';
import { type FieldSet, intersectSets, listPaths } from './field-set.ts';
import type { ManagedEntry, ManagerId } from './managed-fields.ts';

/** A field that an apply would change and that belongs to somebody else. */
export interface Conflict {
  readonly manager: ManagerId;
  /** Path such as `.spec.maxLeases`. */
  readonly field: string;
}

/** The fields of a change that other managers own. */
export function findConflicts(entries: readonly ManagedEntry[], changed: FieldSet): Conflict[] {
  return entries.flatMap((entry) =>
    listPaths(intersectSets(entry.fields, changed)).map((field) => ({ manager: entry, field })),
  );
}

/** The message of the 409 `Status`. */
export function conflictMessage(conflicts: readonly Conflict[]): string {
  const [first] = conflicts;
  if (first !== undefined && conflicts.length === 1) {
    return `Apply failed with 1 conflict: conflict with ${renderManager(first.manager)}: ${first.field}`;
  }
  const byManager = new Map<string, string[]>();
  for (const { manager, field } of conflicts) {
    const name = renderManager(manager);
    byManager.set(name, [...(byManager.get(name) ?? []), field]);
  }
  const lines = [...byManager.keys()]
    .sort()
    .flatMap((name) => [
      `conflicts with ${name}:`,
      ...(byManager.get(name) ?? []).map((field) => `- ${field}`),
    ]);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join('\n')}`;
}

/** `details.causes` of the 409 `Status`: one for each field. */
export function conflictCauses(conflicts: readonly Conflict[]): JsonObject[] {
  return conflicts.map(({ manager, field }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with ${renderManager(manager)}`,
    field,
  }));
}

function renderManager({ manager, operation, apiVersion, subresource }: ManagerId): string {
  const part = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  const version = operation === 'Update' ? ` using ${apiVersion}` : '';
  return `${JSON.stringify(manager)}${part}${version}`;
}
