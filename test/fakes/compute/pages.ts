/** Lists in pages: `maxResults` at a time, with a token that holds where the next one begins. */
import { invalid } from './api-failure.ts';

const PAGE_MAX = 500;

export interface PageQuery {
  readonly maxResults?: string | undefined;
  readonly pageToken?: string | undefined;
}

/** @param sizeMax the API may give less than it is asked for. */
export function pageOf<T>(
  all: readonly T[],
  query: PageQuery,
  sizeMax: number = PAGE_MAX,
): { items: T[]; next?: string } {
  const size = Number(query.maxResults ?? PAGE_MAX);
  if (!Number.isInteger(size) || size < 0 || size > PAGE_MAX) {
    throw invalid('maxResults', query.maxResults, 'Must be from 0 to 500.');
  }
  const start = query.pageToken === undefined ? 0 : positionOf(query.pageToken);
  const end = start + Math.min(size, sizeMax);
  const items = all.slice(start, end);
  return end < all.length ? { items, next: tokenOf(end) } : { items };
}

const tokenOf = (position: number) => Buffer.from(`at:${position}`).toString('base64url');

function positionOf(token: string): number {
  const match = /^at:(\d+)$/.exec(Buffer.from(token, 'base64url').toString());
  if (match === null) throw invalid('pageToken', token, 'Invalid page token.');
  return Number(match[1]);
}
