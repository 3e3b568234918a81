/**
 * What the API does below HTTP: each verb works on one resource, answers with plain JSON and
 * throws a StatusError. All but `watch` run to their end without waiting, so that none sees half of
 * another.
 */
import type { JsonObject, JsonValue } from '../../json.ts';
import type { ApiResource } from '../../registry/api-resource.ts';
import type { PatchType } from './patch-types.ts';

/** What to do about fields that the schema does not know. */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

export type PropagationPolicy = 'Orphan' | 'Background' | 'Foreground';

export interface Selection {
  /** Absent: every namespace, or a cluster-scoped resource. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends Selection {
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: string | undefined;
}

export interface WatchOptions extends Selection {
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: string | undefined;
  readonly allowWatchBookmarks?: boolean | undefined;
  readonly timeoutSeconds?: number | undefined;
  /** Start with all objects and a bookmark that ends them. */
  readonly sendInitialEvents?: boolean | undefined;
}

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: JsonObject;
}

export interface WriteOptions {
  /** Answers as if it had been written. */
  readonly dryRun?: boolean | undefined;
  /** Absent or empty: `unknown`, and refused by apply. */
  readonly fieldManager?: string | undefined;
  /** `Warn` when absent. */
  readonly fieldValidation?: FieldValidation | undefined;
}

export interface UpdateOptions extends WriteOptions {
  /** `binding` of a pod sets `spec.nodeName` and nothing else. */
  readonly subresource?: 'status' | 'binding' | undefined;
}

export interface PatchOptions extends UpdateOptions {
  /** Apply only: take fields over from other managers. */
  readonly force?: boolean | undefined;
}

export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface DeleteOptions {
  readonly preconditions?: Preconditions | undefined;
  readonly propagationPolicy?: PropagationPolicy | undefined;
  readonly gracePeriodSeconds?: number | undefined;
  /** The older spelling of `propagationPolicy: Orphan`. */
  readonly orphanDependents?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
}

export interface WriteResult {
  readonly object: JsonObject;
  /** For `Warning` headers. */
  readonly warnings: readonly string[];
  /** The request created the object: 201 rather than 200. */
  readonly created?: boolean;
}

/** `namespace` is the empty string for cluster-scoped resources. */
export interface Verbs {
  /** Throws 404 for an object that is not there. */
  get(resource: ApiResource, namespace: string, name: string): JsonObject;

  /** A list object of the resource's `listKind`. */
  list(resource: ApiResource, options: ListOptions): JsonObject;

  /**
   * Changes as they come, until the signal aborts, the time is up or an ERROR was told. Throws at
   * once when the request itself is wrong.
   */
  watch(
    resource: ApiResource,
    options: WatchOptions,
    signal: AbortSignal,
  ): AsyncIterable<WatchEvent>;

  /** Throws 409 when the name is taken, 422 for an object that its kind does not allow. */
  create(
    resource: ApiResource,
    namespace: string,
    body: JsonObject,
    options: WriteOptions,
  ): WriteResult;

  /** Throws 409 when the body names a version that is not the stored one. */
  update(
    resource: ApiResource,
    namespace: string,
    name: string,
    body: JsonObject,
    options: UpdateOptions,
  ): WriteResult;

  /** `apply` alone creates what is not there, and minds who owns the fields. */
  patch(
    resource: ApiResource,
    namespace: string,
    name: string,
    patchType: PatchType,
    body: JsonValue,
    options: PatchOptions,
  ): WriteResult;

  /** The deleted object's `Status`, or the object itself while it is on its way out. */
  delete(
    resource: ApiResource,
    namespace: string,
    name: string,
    options: DeleteOptions,
  ): WriteResult;

  /** Deletes what the selection finds; answers with the list of it. */
  deleteCollection(
    resource: ApiResource,
    selection: ListOptions,
    options: DeleteOptions,
  ): WriteResult;
}
