/** Serialised entries, and how they are cut into bodies that the edge takes. Pure. */

import { type InventoryEntry, SYNC_BODY_BYTES_MAX } from '#shared/wire/sync.ts';
import type { Inventory } from './snapshot.ts';

/** Leaves room for the envelope and keeps a page well inside what one Worker holds at once. */
export const PAGE_BYTES_MAX = SYNC_BODY_BYTES_MAX / 2;

/** What the edge has acknowledged, by uid. */
export type Sent = Map<string, InventoryEntry>;

export interface Page {
  readonly upserts: readonly Serialised[];
  /** UIDs. */
  readonly removes: readonly string[];
}

interface Serialised {
  readonly entry: InventoryEntry;
  readonly text: string;
}

/** What turns `sent` into `inventory`, in pages; empty when nothing differs. */
export function deltaPages(sent: Sent, inventory: Inventory, bytesMax = PAGE_BYTES_MAX): Page[] {
  const upserts: Serialised[] = [];
  for (const [uid, entry] of inventory) {
    const before = sent.get(uid);
    if (before === entry) continue;
    const text = JSON.stringify(entry);
    if (before === undefined || JSON.stringify(before) !== text) upserts.push({ entry, text });
  }
  const removes = [...sent.keys()].filter((uid) => !inventory.has(uid));
  return upserts.length === 0 && removes.length === 0 ? [] : cut(upserts, removes, bytesMax);
}

/** All of `inventory`, in pages; at least one, since an empty inventory is told as well. */
export function fullPages(inventory: Inventory, bytesMax = PAGE_BYTES_MAX): Page[] {
  const all = [...inventory.values()].map((entry) => ({ entry, text: JSON.stringify(entry) }));
  return cut(all, [], bytesMax);
}

/** Notes in `sent` that the edge took `page`. */
export function applyPage(sent: Sent, page: Page): void {
  for (const uid of page.removes) sent.delete(uid);
  for (const { entry } of page.upserts) sent.set(entry.uid, entry);
}

/** The envelope around a page; `entries` are spliced in as they are serialised already. */
export function syncBody(
  envelope: Readonly<Record<string, unknown>>,
  page: Page | undefined,
): string {
  const head = JSON.stringify(envelope).slice(0, -1);
  const entries = (page?.upserts ?? []).map(({ text }) => text).join(',');
  return `${head},"upserts":[${entries}],"removes":${JSON.stringify(page?.removes ?? [])}}`;
}

function cut(upserts: readonly Serialised[], removes: readonly string[], bytesMax: number): Page[] {
  const pages: { upserts: Serialised[]; removes: string[] }[] = [{ upserts: [], removes: [] }];
  let bytes = 0;
  /** The page that still has room for `size` more. */
  const pageFor = (size: number) => {
    if (bytes > 0 && bytes + size > bytesMax) {
      pages.push({ upserts: [], removes: [] });
      bytes = 0;
    }
    bytes += size;
    return pages.at(-1);
  };
  for (const uid of removes) pageFor(uid.length + QUOTES_AND_COMMA)?.removes.push(uid);
  for (const each of upserts) pageFor(Buffer.byteLength(each.text) + 1)?.upserts.push(each);
  return pages;
}

const QUOTES_AND_COMMA = 3;
