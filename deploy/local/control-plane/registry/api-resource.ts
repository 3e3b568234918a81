/** What the control plane knows about one resource in one version: names, scope, rules. */
import type { JsonObject } from '../json.ts';
import type { FieldError } from '../schema/field-error.ts';
import type { ResourceSchema } from '../schema/resource-schema.ts';

/** Verbs of a stored resource, in the order in which discovery lists them. */
export const STORED_VERBS = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
] as const;

export interface ApiResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Where its objects are stored; versions and twins (events) of a resource share it. */
  readonly storage: string;
  readonly statusSubresource: boolean;
  /** From a CustomResourceDefinition. */
  readonly custom: boolean;
  /** The OpenAPI v3 schema of the whole object. */
  readonly openAPISchema: JsonObject;
  readonly schema: ResourceSchema;
  /** Column definitions with JSON paths; undefined for built-in kinds. */
  readonly printerColumns?: readonly JsonObject[];
  readonly strategy: Strategy;
}

/** What a strategy may ask of its surroundings. */
export interface StrategyContext {
  /** RFC 3339 time of the request. */
  readonly time: string;
}

/** Where a kind differs from the common way of writing objects. */
export interface Strategy {
  readonly nameRule: 'subdomain' | 'label' | 'path-segment';
  /** PUT without a resourceVersion replaces whatever is there. */
  readonly unconditionalUpdate: boolean;
  /** PUT of an absent object creates it. */
  readonly createOnUpdate: boolean;
  /** `metadata.generation` counts changes of everything but metadata and status. */
  readonly tracksGeneration: boolean;
  /** Deletion waits for the node (`gracePeriodSeconds`). */
  readonly gracefulDeletion: boolean;
  /** Field selectors beyond metadata.name and metadata.namespace: name → value of an object. */
  readonly selectableFields: Readonly<Record<string, (object: JsonObject) => string>>;
  /** The stored form of what this version sends, and back; absent when they are the same. */
  readonly toStorage?: (object: JsonObject) => JsonObject;
  readonly fromStorage?: (object: JsonObject) => JsonObject;
  /** Fills what the server owns in a new object. */
  readonly prepareForCreate?: (object: JsonObject, context: StrategyContext) => JsonObject;
  /** The same for a replacement; `old` is what is stored. */
  readonly prepareForUpdate?: (
    object: JsonObject,
    old: JsonObject,
    context: StrategyContext,
  ) => JsonObject;
  /** Why an object may never be deleted; undefined for one that may. */
  readonly refuseDelete?: (object: JsonObject) => string | undefined;
  /** Marks an object whose deletion begins. */
  readonly prepareForDelete?: (object: JsonObject) => JsonObject;
  /** Whether something besides finalizers and the grace period keeps a deleted object. */
  readonly isHeld?: (object: JsonObject) => boolean;
  /** Rules that a schema cannot say, about the stored form. */
  readonly validate?: (object: JsonObject, old: JsonObject | undefined) => FieldError[];
}

/** `crawl.example.com/v1alpha1`, or `v1` for the core group. */
export function apiVersionOf({ group, version }: { group: string; version: string }): string {
  return group === '' ? version : `${group}/${version}`;
}

/** Pods alone have a log and a binding. */
export function isPods({ group, plural }: ApiResource): boolean {
  return group === '' && plural === 'pods';
}

/** `proxies.crawl.example.com`, or `pods` for the core group. */
export function storageName(plural: string, group: string): string {
  return group === '' ? plural : `${plural}.${group}`;
}

/** Where the definitions of custom resources are stored, under the storage names of those. */
export const CRD_STORAGE = storageName('customresourcedefinitions', 'apiextensions.k8s.io');
