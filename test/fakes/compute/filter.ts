/**
 * The API's filter language, as far as clients of this project use it: `field=value`, `!=`, terms in
 * brackets side by side (and), and the older `field eq "regular expression"`, which has to match the
 * whole field. The two forms cannot be mixed. Anything else is refused.
 */
import { invalid } from './api-failure.ts';

export type Matcher = (resource: object) => boolean;

const TERM = /^([A-Za-z][\w.-]*)\s*(=|!=|\beq\b|\bne\b)\s*(?:"([^"]*)"|([^\s()"]+))$/;

export function parseFilter(text: string): Matcher {
  if (text.trim() === '') return () => true;
  const terms = termsOf(text.trim());
  const matchers = terms.map((term) => {
    const [, field = '', operator = '', quoted, bare] = TERM.exec(term.trim()) ?? [];
    const value = quoted ?? bare;
    if (value === undefined) throw invalid('filter', text, 'Invalid list filter expression.');
    return { operator, matches: matcherOf(field, operator, value) };
  });
  const isOld = ({ operator }: { operator: string }) => ['eq', 'ne'].includes(operator);
  if (matchers.some(isOld) && !matchers.every(isOld)) {
    throw invalid('filter', text, 'Invalid list filter expression.');
  }
  return (resource) => matchers.every(({ matches }) => matches(resource));
}

function termsOf(text: string): string[] {
  if (!text.startsWith('(')) return [text];
  return [...text.matchAll(/\(([^()]*)\)/g)].map(([, term]) => term ?? '');
}

function matcherOf(field: string, operator: string, value: string): Matcher {
  if (operator === '=') return (resource) => valueAt(resource, field) === value;
  if (operator === '!=') return (resource) => valueAt(resource, field) !== value;
  const pattern = new RegExp(`^(?:${value})$`);
  const matches: Matcher = (resource) => pattern.test(valueAt(resource, field) ?? '');
  return operator === 'eq' ? matches : (resource) => !matches(resource);
}

/** `labels.key` or the name of a field; a key of labels holds no dot. */
function valueAt(resource: object, field: string): string | undefined {
  let value: unknown = resource;
  for (const key of field.split('.')) {
    value = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
  }
  return value === undefined ? undefined : String(value);
}
