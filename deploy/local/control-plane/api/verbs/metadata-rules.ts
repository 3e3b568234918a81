/** What `metadata` may hold, worded as the real server words its refusals. */
import { isDeepStrictEqual } from 'node:util';
import { type JsonObject, objects } from '../../json.ts';
import type { ApiResource, Strategy } from '../../registry/api-resource.ts';
import {
  type FieldError,
  forbidden,
  invalid,
  required,
  tooLong,
} from '../../schema/field-error.ts';
import { isDeleting, metadataOf, metaMap, metaStrings, nameOf, stringAt } from '../object-meta.ts';

const ANNOTATIONS_BYTES_MAX = 256 * 1024;
const SUBDOMAIN_LENGTH_MAX = 253;
const LABEL_LENGTH_MAX = 63;

const LABEL_TEXT = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN_TEXT = `${LABEL_TEXT}(\\.${LABEL_TEXT})*`;
const LABEL_PATTERN = new RegExp(`^${LABEL_TEXT}$`);
const SUBDOMAIN_PATTERN = new RegExp(`^${SUBDOMAIN_TEXT}$`);
const QUALIFIED_TEXT = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const QUALIFIED_PATTERN = new RegExp(`^${QUALIFIED_TEXT}$`);
const VALUE_PATTERN = new RegExp(`^(${QUALIFIED_TEXT})?$`);

const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', " +
  "and must start and end with an alphanumeric character (e.g. 'example.com', regex used for " +
  `validation is '${SUBDOMAIN_TEXT}')`;
const LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must " +
  "start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for " +
  `validation is '${LABEL_TEXT}')`;
const QUALIFIED_RULE =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with " +
  "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for " +
  `validation is '${QUALIFIED_TEXT}')`;
const VALUE_RULE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', " +
  "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or " +
  `'12345', regex used for validation is '(${QUALIFIED_TEXT})?')`;

/** Every reason to refuse the metadata of a new object. */
export function validateMetadata(resource: ApiResource, object: JsonObject): FieldError[] {
  return [
    ...validateName(resource.strategy, nameOf(object)),
    ...validateLabels(metaMap(object, 'labels')),
    ...validateAnnotations(metaMap(object, 'annotations')),
    ...metaStrings(object, 'finalizers').flatMap((name) =>
      qualifiedNameProblems(name).map((rule) => invalid('metadata.finalizers', name, rule)),
    ),
    ...validateOwners(objects(metadataOf(object)['ownerReferences'])),
  ];
}

/** The same for a replacement of `old`, whose identity it must keep. */
export function validateMetadataUpdate(
  resource: ApiResource,
  object: JsonObject,
  old: JsonObject,
): FieldError[] {
  const [next, before] = [metadataOf(object), metadataOf(old)];
  const immutable = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp']
    .filter((field) => !isDeepStrictEqual(next[field], before[field]))
    .map((field) => invalid(`metadata.${field}`, next[field] ?? null, 'field is immutable'));
  return [...immutable, ...validateMetadata(resource, object), ...newFinalizers(object, old)];
}

/** Finalizers that might clash with somebody else's get a warning. */
export function finalizerWarnings(object: JsonObject): string[] {
  const standard = ['orphan', 'foregroundDeletion', 'kubernetes'];
  return metaStrings(object, 'finalizers')
    .filter((name) => !name.includes('/') && !name.includes('.') && !standard.includes(name))
    .map(
      (name) =>
        `metadata.finalizers: "${name}": prefer a domain-qualified finalizer name to avoid ` +
        'accidental conflicts with other finalizer writers',
    );
}

function newFinalizers(object: JsonObject, old: JsonObject): FieldError[] {
  if (!isDeleting(old)) return [];
  const known = metaStrings(old, 'finalizers');
  const added = metaStrings(object, 'finalizers').filter((name) => !known.includes(name));
  if (added.length === 0) return [];
  const list = added.map((name) => JSON.stringify(name)).join(', ');
  const detail =
    'no new finalizers can be added if the object is being deleted, found new finalizers ' +
    `[]string{${list}}`;
  return [forbidden('metadata.finalizers', detail)];
}

function validateName({ nameRule }: Strategy, name: string): FieldError[] {
  const problems = name === '' ? [] : NAME_RULES[nameRule](name);
  return problems.map((rule) => invalid('metadata.name', name, rule));
}

const NAME_RULES: Record<Strategy['nameRule'], (name: string) => string[]> = {
  subdomain: subdomainProblems,
  label: (name) => [
    ...lengthProblems(name, LABEL_LENGTH_MAX),
    ...(LABEL_PATTERN.test(name) ? [] : [LABEL_RULE]),
  ],
  'path-segment': (name) => [
    ...(name === '.' || name === '..' ? [`may not be '${name}'`] : []),
    ...['/', '%'].filter((part) => name.includes(part)).map((part) => `may not contain '${part}'`),
  ],
};

function subdomainProblems(name: string): string[] {
  return [
    ...lengthProblems(name, SUBDOMAIN_LENGTH_MAX),
    ...(SUBDOMAIN_PATTERN.test(name) ? [] : [SUBDOMAIN_RULE]),
  ];
}

function lengthProblems(text: string, max: number): string[] {
  return text.length > max ? [`must be no more than ${max} characters`] : [];
}

/** `name` or `prefix.example.com/name`. */
function qualifiedNameProblems(key: string): string[] {
  const parts = key.split('/');
  const [first = '', second] = parts;
  const name = second ?? first;
  if (parts.length > 2) {
    return [`a qualified name ${QUALIFIED_RULE.slice('name part '.length)}`];
  }
  const prefixProblems = second === undefined ? [] : prefixRules(first);
  if (name === '') return [...prefixProblems, 'name part must be non-empty'];
  return [
    ...prefixProblems,
    ...lengthProblems(name, LABEL_LENGTH_MAX).map((rule) => `name part ${rule}`),
    ...(QUALIFIED_PATTERN.test(name) ? [] : [QUALIFIED_RULE]),
  ];
}

function prefixRules(prefix: string): string[] {
  if (prefix === '') return ['prefix part must be non-empty'];
  return subdomainProblems(prefix).map((rule) => `prefix part ${rule}`);
}

function validateLabels(labels: Readonly<Record<string, string>>): FieldError[] {
  return Object.entries(labels).flatMap(([key, value]) => [
    ...qualifiedNameProblems(key).map((rule) => invalid('metadata.labels', key, rule)),
    ...lengthProblems(value, LABEL_LENGTH_MAX).map((rule) =>
      invalid('metadata.labels', value, rule),
    ),
    ...(VALUE_PATTERN.test(value) ? [] : [invalid('metadata.labels', value, VALUE_RULE)]),
  ]);
}

function validateAnnotations(annotations: Readonly<Record<string, string>>): FieldError[] {
  const errors = Object.keys(annotations).flatMap((key) =>
    qualifiedNameProblems(key.toLowerCase()).map((rule) =>
      invalid('metadata.annotations', key, rule),
    ),
  );
  const size = Object.entries(annotations).flat().join('');
  if (new TextEncoder().encode(size).length <= ANNOTATIONS_BYTES_MAX) return errors;
  return [...errors, tooLong('metadata.annotations', ANNOTATIONS_BYTES_MAX)];
}

function validateOwners(owners: readonly JsonObject[]): FieldError[] {
  const errors = owners.flatMap((owner, index) =>
    ['apiVersion', 'kind', 'name', 'uid']
      .filter((field) => stringAt(owner, field) === '')
      .map((field) =>
        invalid(`metadata.ownerReferences[${index}].${field}`, '', `${field} must not be empty`),
      ),
  );
  const [first, second] = owners.filter((owner) => owner['controller'] === true);
  if (first === undefined || second === undefined) return errors;
  const detail =
    'Only one reference can have Controller set to true. Found "true" in references for ' +
    `${stringAt(first, 'name')} and ${stringAt(second, 'name')}`;
  return [...errors, invalid('metadata.ownerReferences', [...owners], detail)];
}

/** A new object needs a name, at the latest after one was generated. */
export function missingName(): FieldError {
  return required('metadata.name', 'name or generateName is required');
}
