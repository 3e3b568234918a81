/** `create`: names are generated, what the server owns is filled in, the rest is checked. */
import type { Random } from '#shared/clock.ts';
import type { JsonObject } from '../../json.ts';
import { type ApiResource, CRD_STORAGE } from '../../registry/api-resource.ts';
import { namespacePhase } from '../../registry/strategies/namespace.ts';
import {
  isDeleting,
  metaString,
  nameOf,
  namespaceOf,
  resourceVersionOf,
  withMetadata,
} from '../object-meta.ts';
import {
  alreadyExists,
  badRequest,
  invalid,
  methodNotAllowed,
  namespaceTerminating,
  notFound,
  StatusError,
} from '../status-error.ts';
import { refOf, timestamp, type VerbDeps } from './context.ts';
import { decodeObject } from './decode.ts';
import { finalizerWarnings, missingName, validateMetadata } from './metadata-rules.ts';
import { storeNew, toStored, withOwnership } from './store-object.ts';
import type { WriteOptions, WriteResult } from './verbs.ts';

const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;
const GENERATED_BASE_MAX = 58;
/** Attempts to find a free generated name. */
const GENERATE_ATTEMPTS_MAX = 8;
const NAMESPACES = { group: '', plural: 'namespaces', kind: 'Namespace' };

export function createObject(
  deps: VerbDeps,
  resource: ApiResource,
  namespace: string,
  body: JsonObject,
  options: WriteOptions,
): WriteResult {
  const { object, warnings } = decodeObject(resource, body, options.fieldValidation);
  if (resourceVersionOf(object) !== '') {
    const message = 'resourceVersion should not be set on objects to be created';
    throw new StatusError(500, '', message);
  }
  const prepared = prepareNew(deps, resource, namespace, object);
  const owned = withOwnership(deps, resource, undefined, prepared, options);
  return storePrepared(deps, resource, owned, options, warnings);
}

/** A decoded object with everything that the server owns, valid. */
export function prepareNew(
  deps: VerbDeps,
  resource: ApiResource,
  namespace: string,
  object: JsonObject,
): JsonObject {
  const named = withName(deps, resource, namespace, object);
  const { strategy, schema } = resource;
  const time = timestamp(deps.clock);
  const next = withMetadata(strategy.prepareForCreate?.(named, { time }) ?? named, {
    uid: deps.newId(),
    creationTimestamp: time,
    generation: strategy.tracksGeneration ? 1 : undefined,
    deletionTimestamp: undefined,
    deletionGracePeriodSeconds: undefined,
    selfLink: undefined,
  });
  assertServed(deps, resource);
  assertNamespace(deps, resource, namespace, nameOf(next));
  const errors = [
    ...(nameOf(next) === '' ? [missingName()] : []),
    ...validateMetadata(resource, next),
    ...schema.validate(next),
    ...(strategy.validate?.(toStored(resource, next), undefined) ?? []),
  ];
  if (errors.length > 0) throw invalid(resource, nameOf(next), errors);
  return next;
}

/** Stores what `prepareNew` made; throws 409 when the name is taken. */
export function storePrepared(
  deps: VerbDeps,
  resource: ApiResource,
  object: JsonObject,
  options: WriteOptions,
  warnings: readonly string[],
): WriteResult {
  const ref = refOf(resource, namespaceOf(object), nameOf(object));
  if (deps.store.get(ref) !== undefined) throw alreadyExists(resource, ref.name);
  return {
    object: storeNew(deps, resource, ref, object, options),
    warnings: [...warnings, ...finalizerWarnings(object)],
    created: true,
  };
}

function withName(
  deps: VerbDeps,
  resource: ApiResource,
  namespace: string,
  object: JsonObject,
): JsonObject {
  const stated = namespaceOf(object);
  if (resource.namespaced && stated !== '' && stated !== namespace) {
    throw badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  }
  const place = withMetadata(object, { namespace: resource.namespaced ? namespace : undefined });
  const base = metaString(object, 'generateName');
  if (nameOf(object) !== '' || base === '') return place;
  return withMetadata(place, { name: freeName(deps, resource, namespace, base) });
}

function freeName(
  { store, random }: VerbDeps,
  resource: ApiResource,
  namespace: string,
  base: string,
): string {
  let name = '';
  for (let attempt = 0; attempt < GENERATE_ATTEMPTS_MAX; attempt++) {
    name = base.slice(0, GENERATED_BASE_MAX) + suffix(random);
    if (store.get(refOf(resource, namespace, name)) === undefined) break;
  }
  return name;
}

function suffix(random: Random): string {
  const letters = Array.from(
    { length: SUFFIX_LENGTH },
    () => SUFFIX_ALPHABET[Math.floor(random() * SUFFIX_ALPHABET.length)],
  );
  return letters.join('');
}

/** A definition on its way out waits for its objects and takes no more of them. */
function assertServed({ store }: VerbDeps, resource: ApiResource): void {
  if (!resource.custom) return;
  const ref = { resource: CRD_STORAGE, namespace: '', name: resource.storage };
  const definition = store.get(ref);
  if (definition === undefined || !isDeleting(definition)) return;
  const message = 'create not allowed while custom resource definition is terminating';
  throw methodNotAllowed(message);
}

/** The namespace of a new object exists and is going to stay. */
function assertNamespace(
  { store }: VerbDeps,
  resource: ApiResource,
  namespace: string,
  name: string,
): void {
  if (!resource.namespaced) return;
  const found = store.get({ resource: NAMESPACES.plural, namespace: '', name: namespace });
  if (found === undefined) throw notFound(NAMESPACES, namespace);
  if (namespacePhase(found) === 'Terminating') {
    throw namespaceTerminating(resource, name, namespace);
  }
}
