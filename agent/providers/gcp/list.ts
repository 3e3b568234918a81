/** All marked instances of a project, over all zones and pages. */
import type { GcpBlock } from '../config-gcp.ts';
import { isMarked } from '../mark.ts';
import { type Instance, PartialListError } from '../provider.ts';
import type { ComputeApi } from './compute-api.ts';
import { nameOfUrl } from './id.ts';
import { MARK_FILTER } from './labels.ts';
import type { AggregatedPage } from './resources.ts';
import { instanceFrom } from './state.ts';

/** The API's own most. */
const PAGE_SIZE = 500;
/** Half a million instances; more means that pages go in circles. */
const PAGES_MAX = 1_000;
/** The one warning that says nothing: no instance of this page is in the scope. */
const EMPTY = 'NO_RESULTS_ON_PAGE';
/** Warnings with which something may be missing. */
const MISSING: ReadonlySet<string> = new Set(['UNREACHABLE', 'PARTIAL_SUCCESS']);

export interface ListDeps {
  readonly provider: string;
  readonly block: GcpBlock;
  readonly api: ComputeApi;
  /** Told of the scopes that could not be read. */
  readonly onUnread: (scopes: readonly string[]) => void;
}

/** Throws a PartialListError when a zone could not be read. */
export async function listInstances(deps: ListDeps, signal: AbortSignal): Promise<Instance[]> {
  const instances = new Map<string, Instance>();
  const unread = new Set<string>();
  for await (const page of pagesOf(deps.api, signal)) {
    for (const scope of unreadOf(page)) unread.add(scope);
    for (const [scope, { instances: found }] of Object.entries(page.items)) {
      for (const resource of found) {
        // The filter is the API's; what is not marked must not be collected whatever it says.
        if (!isMarked(resource.labels)) continue;
        const instance = instanceFrom(resource, nameOfUrl(scope), deps.block.addressMode);
        instances.set(instance.id, instance);
      }
    }
  }
  const list = [...instances.values()];
  if (unread.size === 0) return list;
  const scopes = [...unread].sort();
  deps.onUnread(scopes);
  throw new PartialListError(deps.provider, list, scopes);
}

async function* pagesOf(api: ComputeApi, signal: AbortSignal): AsyncGenerator<AggregatedPage> {
  let pageToken = '';
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const query = { filter: MARK_FILTER, maxResults: PAGE_SIZE };
    const page = await api.listInstances(
      pageToken === '' ? query : { ...query, pageToken },
      signal,
    );
    yield page;
    if (page.nextPageToken === '') return;
    pageToken = page.nextPageToken;
  }
  throw new Error(`the list of instances has more than ${PAGES_MAX} pages`);
}

/** Scopes of which something may be missing: each may be told in three places. */
export function unreadOf({ items, unreachables, warning }: AggregatedPage): string[] {
  const scopes = Object.entries(items)
    .filter(([, { warning: code }]) => code !== EMPTY && MISSING.has(code))
    .map(([scope]) => scope);
  const named = [...scopes, ...unreachables.map(scopeOf)];
  return named.length === 0 && MISSING.has(warning) ? ['some zone'] : named;
}

/** `zones/…` of a URL or path. */
function scopeOf(unreachable: string): string {
  const at = unreachable.indexOf('zones/');
  return at < 0 ? unreachable : unreachable.slice(at);
}
