/** Serialised entries, and how they are cut into bodies that the edge takes. Pure. */

import { SYNC_BODY_BYTES_MAX } from '#shared/wire/sync.ts';
import type { Inventory } from './snapshot.ts';

/** Leaves room for the envelope and keeps a page well inside what one Worker holds at once. */
export const PAGE_BYTES_MAX = SYNC_BODY_BYTES_MAX / 2;

/** What was sent of each proxy, in its serialised form, by uid. */
export type Sent = ReadonlyMap<string, string>;

export interface Page {
  /** Serialised entries by uid. */
  readonly upserts: ReadonlyMap<string, string>;
  readonly removes: readonly string[];
}

/** What turns `sent` into `inventory`, in pages; empty when nothing differs. */
export function deltaPages(sent: Sent, inventory: Inventory, bytesMax = PAGE_BYTES_MAX): Page[] {
  const upserts = new Map<string, string>();
  for (const [uid, entry] of inventory) {
    const text = JSON.stringify(entry);
    if (sent.get(uid) !== text) upserts.set(uid, text);
  }
  const removes = [...sent.keys()].filter((uid) => !inventory.has(uid));
  return upserts.size === 0 && removes.length === 0 ? [] : cut(upserts, removes, bytesMax);
}

/** All of `inventory`, in pages; at least one, since an empty inventory is told as well. */
export function fullPages(inventory: Inventory, bytesMax = PAGE_BYTES_MAX): Page[] {
  const upserts = new Map<string, string>();
  for (const [uid, entry] of inventory) upserts.set(uid, JSON.stringify(entry));
  return cut(upserts, [], bytesMax);
}

/** `sent` after the edge took `page`. */
export function applyPage(sent: Map<string, string>, page: Page): void {
  for (const uid of page.removes) sent.delete(uid);
  for (const [uid, text] of page.upserts) sent.set(uid, text);
}

/** The envelope around a page; `entries` are spliced in as they are serialised already. */
export function syncBody(
  envelope: Readonly<Record<string, unknown>>,
  page: Page | undefined,
): string {
  const head = JSON.stringify(envelope).slice(0, -1);
  const entries = page === undefined ? '' : [...page.upserts.values()].join(',');
  return `${head},"upserts":[${entries}],"removes":${JSON.stringify(page?.removes ?? [])}}`;
}

function cut(
  upserts: ReadonlyMap<string, string>,
  removes: readonly string[],
  bytesMax: number,
): Page[] {
  const pages: { upserts: Map<string, string>; removes: string[] }[] = [];
  let page = { upserts: new Map<string, string>(), removes: [] as string[] };
  let bytes = 0;
  const room = (size: number) => {
    if (bytes > 0 && bytes + size > bytesMax) {
      pages.push(page);
      page = { upserts: new Map(), removes: [] };
      bytes = 0;
    }
    bytes += size;
  };
  for (const uid of removes) {
    room(uid.length + QUOTES_AND_COMMA);
    page.removes.push(uid);
  }
  for (const [uid, text] of upserts) {
    room(Buffer.byteLength(text) + 1);
    page.upserts.set(uid, text);
  }
  pages.push(page);
  return pages;
}

const QUOTES_AND_COMMA = 3;
