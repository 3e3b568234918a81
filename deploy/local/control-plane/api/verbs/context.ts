/** What all verbs share: their dependencies and the way to one stored object. */
import type { Clock, Random } from '#shared/clock.ts';
import { type JsonObject, setOwn } from '../../json.ts';
import { type ApiResource, apiVersionOf } from '../../registry/api-resource.ts';
import type { ResourceRegistry } from '../../registry/resource-registry.ts';
import type { ObjectRef, ObjectStore } from '../../storage/object-store.ts';
import { notFound } from '../status-error.ts';
import { rfc3339 } from './times.ts';

export interface VerbDeps {
  readonly store: ObjectStore;
  readonly registry: ResourceRegistry;
  readonly clock: Clock;
  /** For the suffixes of generated names. */
  readonly random: Random;
  /** A fresh UUID. */
  readonly newId: () => string;
}

/** Where an object is stored; cluster-scoped resources have no use for the namespace. */
export function refOf(resource: ApiResource, namespace: string, name: string): ObjectRef {
  return {
    resource: resource.storage,
    namespace: resource.namespaced ? namespace : '',
    name,
  };
}

/** The stored object, in its stored form; throws 404. */
export function mustGet({ store }: VerbDeps, resource: ApiResource, ref: ObjectRef): JsonObject {
  const stored = store.get(ref);
  if (stored === undefined) throw notFound(resource, ref.name);
  return stored;
}

/** A stored object as this version of the resource shows it, with its type stated first. */
export function shown(resource: ApiResource, stored: JsonObject): JsonObject {
  const object = resource.strategy.fromStorage?.(stored) ?? stored;
  const result: JsonObject = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  for (const [field, value] of Object.entries(object)) {
    if (field !== 'apiVersion' && field !== 'kind') setOwn(result, field, value);
  }
  return result;
}

/** RFC 3339 time of now, in whole seconds as API objects carry it. */
export function timestamp(clock: Clock, offsetSeconds = 0): string {
  return rfc3339(clock.now() + offsetSeconds * 1000);
}
