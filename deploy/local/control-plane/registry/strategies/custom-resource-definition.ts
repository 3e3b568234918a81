/** CustomResourceDefinitions: what a schema cannot say about names, versions and CEL rules. */
import { nameOf, objectAt, stringAt } from '../../api/object-meta.ts';
import { isJsonObject, type JsonObject, objects } from '../../json.ts';
import { type FieldError, forbidden, invalid, required } from '../../schema/field-error.ts';
import { compileResourceSchema } from '../../schema/resource-schema.ts';
import type { Strategy } from '../api-resource.ts';
import { crdNames } from '../custom-resources.ts';
import { plainStrategy } from './plain.ts';

export const crdStrategy: Strategy = {
  ...plainStrategy,
  unconditionalUpdate: false,
  tracksGeneration: true,
  prepareForCreate: (crd) => withNames({ ...crd, status: {} }),
  prepareForUpdate: withNames,
  validate: (crd, old) => [
    ...validateName(crd),
    ...validateVersions(objects(objectAt(crd, 'spec').versions)),
    ...(old === undefined ? [] : validateImmutable(crd, old)),
  ],
};

/** The names that may be left out, spelled out as the real server stores them. */
function withNames(crd: JsonObject): JsonObject {
  const spec = objectAt(crd, 'spec');
  const { kind, singular, listKind } = crdNames(crd);
  if (kind === '') return crd;
  return {
    ...crd,
    spec: {
      ...spec,
      names: { ...objectAt(spec, 'names'), singular, listKind },
      conversion: spec.conversion ?? { strategy: 'None' },
    },
  };
}

function validateName(crd: JsonObject): FieldError[] {
  const spec = objectAt(crd, 'spec');
  const expected = `${stringAt(objectAt(spec, 'names'), 'plural')}.${stringAt(spec, 'group')}`;
  if (nameOf(crd) === expected) return [];
  return [invalid('metadata.name', nameOf(crd), 'must be spec.names.plural+"."+spec.group')];
}

function validateVersions(versions: readonly JsonObject[]): FieldError[] {
  const stored = versions.filter((version) => version.storage === true).length;
  const errors = versions.flatMap(validateVersion);
  if (stored === 1) return errors;
  const names = versions.map((version) => stringAt(version, 'name'));
  const detail = 'must have exactly one version marked as storage version';
  return [...errors, invalid('spec.versions', names, detail)];
}

function validateVersion(version: JsonObject, index: number): FieldError[] {
  const path = `spec.versions[${index}].schema.openAPIV3Schema`;
  const schema = objectAt(version, 'schema').openAPIV3Schema;
  if (!isJsonObject(schema)) return [required(path, 'schemas are required')];
  if (schema.type !== 'object') {
    return [invalid(`${path}.type`, schema.type ?? '', 'must be object at the root')];
  }
  return schemaProblems(schema, path);
}

function schemaProblems(schema: JsonObject, path: string): FieldError[] {
  try {
    return compileResourceSchema(schema).problems.map((problem) => ({
      ...problem,
      field: `${path}.${problem.field}`,
    }));
  } catch (error) {
    return [invalid(path, '', error instanceof Error ? error.message : String(error))];
  }
}

function validateImmutable(crd: JsonObject, old: JsonObject): FieldError[] {
  const [before, after] = [objectAt(old, 'spec'), objectAt(crd, 'spec')];
  return ['group', 'scope']
    .filter((field) => before[field] !== after[field])
    .map((field) => forbidden(`spec.${field}`, 'field is immutable'));
}
