/** Selectors: the attributes that a crawler asks for, each with its value. */
import type { ProxyRecord } from './model.ts';

export type Selector = Readonly<Record<string, string>>;

export function matches(proxy: ProxyRecord, selector: Selector): boolean {
  const { attributes } = proxy.entry;
  for (const key of Object.keys(selector)) {
    if (!Object.hasOwn(attributes, key) || attributes[key] !== selector[key]) return false;
  }
  return true;
}

/** The same text for the same selector; neither "=" nor "," can be in a label. */
export function selectorKey(selector: Selector): string {
  const keys = Object.keys(selector);
  if (keys.length === 0) return '';
  return keys
    .sort()
    .map((key) => `${key}=${selector[key]}`)
    .join(',');
}
