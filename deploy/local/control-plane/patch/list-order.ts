/** The order of a merged list: what the patch names keeps its order, the rest its old place. */
import type { JsonValue } from '../json.ts';

/** Tells which items are the same one. */
export type Identify = (item: JsonValue) => string;

/**
 * Orders the items: those that `wanted` names by its order, the others by `original`, and the two
 * sequences interleaved so that old neighbours stay neighbours where they can.
 */
export function orderItems(
  items: readonly JsonValue[],
  wanted: readonly JsonValue[],
  original: readonly JsonValue[],
  identify: Identify,
): JsonValue[] {
  const wantedIndex = positions(wanted, identify);
  const originalIndex = positions(original, identify);
  const byIndex = (index: ReadonlyMap<string, number>) => (left: JsonValue, right: JsonValue) =>
    (index.get(identify(left)) ?? items.length) - (index.get(identify(right)) ?? items.length);
  const named = items.filter((item) => wantedIndex.has(identify(item))).sort(byIndex(wantedIndex));
  const others = items
    .filter((item) => !wantedIndex.has(identify(item)))
    .sort(byIndex(originalIndex));
  return interleave(others, named, (item) => originalIndex.get(identify(item)));
}

function interleave(
  others: readonly JsonValue[],
  named: readonly JsonValue[],
  place: (item: JsonValue) => number | undefined,
): JsonValue[] {
  const result: JsonValue[] = [];
  let next = 0;
  for (const item of named) {
    const itemPlace = place(item);
    for (let other = others[next]; other !== undefined; other = others[next]) {
      const otherPlace = place(other);
      if (itemPlace === undefined || otherPlace === undefined || otherPlace >= itemPlace) break;
      result.push(other);
      next++;
    }
    result.push(item);
  }
  return [...result, ...others.slice(next)];
}

function positions(list: readonly JsonValue[], identify: Identify): Map<string, number> {
  const index = new Map<string, number>();
  for (const [position, item] of list.entries()) {
    const identity = identify(item);
    if (!index.has(identity)) index.set(identity, position);
  }
  return index;
}
