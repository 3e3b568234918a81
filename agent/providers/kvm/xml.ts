/** XML as libvirt takes and gives it. Pure. */
import { DOMParser, type Element } from '@xmldom/xmldom';

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** What XML 1.0 cannot hold in any writing, lone halves of surrogate pairs included. */
const IMPOSSIBLE = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/** `value` as content of an element or of a quoted attribute; what cannot be written is left out. */
export function escapeXml(value: string | number): string {
  return String(value)
    .replace(IMPOSSIBLE, '')
    .replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}

/** Fills a template of XML; every value is escaped, but for what `rawXml` marks. */
export function xml(parts: TemplateStringsArray, ...values: (string | number | Raw)[]): string {
  return parts
    .map((part, index) => {
      const value = values[index];
      if (value === undefined) return part;
      return part + (typeof value === 'object' ? value.xml : escapeXml(value));
    })
    .join('');
}

interface Raw {
  readonly xml: string;
}

/** XML that `xml` made, to be put into other XML. */
export function rawXml(text: string): Raw {
  return { xml: text };
}

/** The root element; undefined for what is no XML. */
export function parseXml(text: string): Element | undefined {
  try {
    const parser = new DOMParser({ onError: refuse });
    return parser.parseFromString(text, 'text/xml').documentElement ?? undefined;
  } catch {
    return undefined;
  }
}

function refuse(level: string, message: string): void {
  if (level !== 'warning') throw new Error(message);
}

/** The element at `path` below `element`, such as `target/path`; the first of several. */
export function child(element: Element | undefined, path: string): Element | undefined {
  let found = element;
  for (const name of path.split('/')) found = found && children(found, name)[0];
  return found;
}

/** The elements right below `element` that have this local name. */
export function children(element: Element, name: string): Element[] {
  return [...element.children].filter(({ localName }) => localName === name);
}

/** Text of the element at `path`; undefined when there is no such element. */
export function textAt(element: Element | undefined, path: string): string | undefined {
  return child(element, path)?.textContent?.trim() ?? undefined;
}
