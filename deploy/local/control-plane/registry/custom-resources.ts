/** From a CustomResourceDefinition to the resources it defines, one for each served version. */
import { nameOf, objectAt, stringAt } from '../api/object-meta.ts';
import { type JsonObject, objects, strings } from '../json.ts';
import { compileResourceSchema } from '../schema/resource-schema.ts';
import type { ApiResource } from './api-resource.ts';
import { customResourceStrategy } from './strategies/custom-resource.ts';

/** The names of a definition, with those filled in that may be left out. */
export interface CrdNames {
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
}

/** Reads them from the spec: what is accepted of them is the registry's business. */
export function crdNames(crd: JsonObject): CrdNames {
  const names = objectAt(objectAt(crd, 'spec'), 'names');
  const kind = stringAt(names, 'kind');
  return {
    plural: stringAt(names, 'plural'),
    singular: stringAt(names, 'singular') || kind.toLowerCase(),
    kind,
    listKind: stringAt(names, 'listKind') || `${kind}List`,
    shortNames: strings(names.shortNames),
    categories: strings(names.categories),
  };
}

/** The name of the version in which objects are stored. */
export function storageVersion(crd: JsonObject): string {
  return stringAt(storedAs(crd), 'name');
}

/** The resource in its stored version, which is there even when no version is served any more. */
export function storedResource(crd: JsonObject): ApiResource {
  return customResource(crd, objectAt(crd, 'spec'), storedAs(crd));
}

function storedAs(crd: JsonObject): JsonObject {
  const versions = objects(objectAt(crd, 'spec').versions);
  return versions.find((version) => version.storage === true) ?? {};
}

/** Throws for a schema that does not compile; validation keeps those from being stored. */
export function customResources(crd: JsonObject): ApiResource[] {
  const spec = objectAt(crd, 'spec');
  return objects(spec.versions)
    .filter((version) => version.served === true)
    .map((version) => customResource(crd, spec, version));
}

function customResource(crd: JsonObject, spec: JsonObject, version: JsonObject): ApiResource {
  const group = stringAt(spec, 'group');
  const name = stringAt(version, 'name');
  const openAPISchema = objectAt(objectAt(version, 'schema'), 'openAPIV3Schema');
  const statusSubresource = objectAt(version, 'subresources').status !== undefined;
  const stored = `${group}/${storageVersion(crd)}`;
  const served = `${group}/${name}`;
  return {
    group,
    version: name,
    ...crdNames(crd),
    namespaced: stringAt(spec, 'scope') === 'Namespaced',
    storage: nameOf(crd),
    statusSubresource,
    custom: true,
    openAPISchema,
    schema: compileResourceSchema(openAPISchema),
    printerColumns: objects(version.additionalPrinterColumns),
    strategy: customResourceStrategy(
      statusSubresource,
      (object) => ({ ...object, apiVersion: stored }),
      (object) => ({ ...object, apiVersion: served }),
    ),
  };
}
