/** Label and field selectors: parsed once, then asked for each object. */
import type { JsonObject } from '../../json.ts';
import type { ApiResource } from '../../registry/api-resource.ts';
import { metaMap, nameOf, namespaceOf } from '../object-meta.ts';
import { badRequest } from '../status-error.ts';
import type { Selection } from './verbs.ts';

/** Tells whether a stored object is selected. */
export type Predicate = (stored: JsonObject) => boolean;

type Labels = Readonly<Record<string, string>>;

const KEY = '[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?';
const VALUE = '(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?';
const SET_REQUIREMENT = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const EQUALITY = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*(${VALUE})$`);
const EXISTENCE = new RegExp(`^(!?)\\s*(${KEY})$`);
const ORDER = new RegExp(`^(${KEY})\\s*([<>])\\s*(\\d+)$`);
const WHOLE_VALUE = new RegExp(`^${VALUE}$`);

/** Both selectors of a request in one; throws 400 for one that cannot be read. */
export function parseSelection(resource: ApiResource, selection: Selection): Predicate {
  const labels = parseLabelSelector(selection.labelSelector ?? '');
  const fields = parseFieldSelector(resource, selection.fieldSelector ?? '');
  return (stored) => labels(metaMap(stored, 'labels')) && fields(stored);
}

/** `app=a,tier!=b,env in (x,y),!gone,there`. */
export function parseLabelSelector(text: string): (labels: Labels) => boolean {
  const requirements = splitOutsideParentheses(text).map((part) => requirement(part, text));
  return (labels) => requirements.every((matches) => matches(labels));
}

function splitOutsideParentheses(text: string): string[] {
  if (text.trim() === '') return [];
  return text.split(/,(?![^(]*\))/).map((part) => part.trim());
}

function requirement(part: string, selector: string): (labels: Labels) => boolean {
  const set = SET_REQUIREMENT.exec(part);
  if (set !== null) return setRequirement(set, selector);
  const equality = EQUALITY.exec(part);
  if (equality !== null) {
    const [, key = '', operator, value = ''] = equality;
    // An object without the label differs from every value.
    if (operator === '!=') return (labels) => label(labels, key) !== value;
    return (labels) => label(labels, key) === value;
  }
  const order = ORDER.exec(part);
  if (order !== null) {
    const [, key = '', operator, bound = ''] = order;
    return (labels) => {
      const value = Number.parseInt(label(labels, key) ?? '', 10);
      return operator === '<' ? value < Number(bound) : value > Number(bound);
    };
  }
  const existence = EXISTENCE.exec(part);
  if (existence === null) throw unreadable(selector, part);
  const [, not, key = ''] = existence;
  return (labels) => (label(labels, key) === undefined) === (not === '!');
}

function setRequirement(
  [, key = '', operator, list = '']: RegExpExecArray,
  selector: string,
): (labels: Labels) => boolean {
  const values = list.split(',').map((value) => value.trim());
  const wrong = values.find((value) => !WHOLE_VALUE.test(value));
  if (wrong !== undefined) throw unreadable(selector, wrong);
  return (labels) => {
    const value = label(labels, key);
    const isIn = value !== undefined && values.includes(value);
    return operator === 'in' ? isIn : !isIn;
  };
}

function label(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

function unreadable(selector: string, part: string): Error {
  return badRequest(
    `unable to parse requirement: found '${part}' in label selector '${selector}', expected ` +
      "a key, '=', '==', '!=', 'in', 'notin', '<' or '>'",
  );
}

/** `metadata.name=a,status.phase!=Running`, with the fields that the resource offers. */
export function parseFieldSelector(resource: ApiResource, text: string): Predicate {
  const terms = text
    .split(',')
    .map((term) => term.trim())
    .filter((term) => term !== '')
    .map((term) => fieldTerm(resource, term));
  return (stored) => terms.every((matches) => matches(stored));
}

function fieldTerm(resource: ApiResource, term: string): Predicate {
  const match = /^([^=!]+)(==|=|!=)(.*)$/.exec(term);
  if (match === null) {
    throw badRequest(`invalid selector: '${term}'; can't understand '${term}'`);
  }
  const [, field = '', operator, value = ''] = match;
  const read = fieldReader(resource, field.trim());
  if (operator === '!=') return (stored) => read(stored) !== value;
  return (stored) => read(stored) === value;
}

function fieldReader(resource: ApiResource, field: string): (stored: JsonObject) => string {
  if (field === 'metadata.name') return nameOf;
  if (field === 'metadata.namespace') return namespaceOf;
  const selectable = resource.strategy.selectableFields;
  const read = Object.hasOwn(selectable, field) ? selectable[field] : undefined;
  if (read !== undefined) return read;
  throw badRequest(
    resource.custom
      ? `field label not supported: ${field}`
      : `field label "${field}" not supported for ${resource.kind}`,
  );
}
