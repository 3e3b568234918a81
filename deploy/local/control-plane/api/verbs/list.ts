/** `get` and `list`: pages of one list all show the state of its first page. */
import { Buffer } from 'node:buffer';
import { isJsonObject, type JsonObject, type JsonValue } from '../../json.ts';
import { type ApiResource, apiVersionOf } from '../../registry/api-resource.ts';
import { entryKey } from '../../storage/object-store.ts';
import { nameOf, namespaceOf } from '../object-meta.ts';
import { badRequest, expired, resourceVersionTooLarge } from '../status-error.ts';
import { mustGet, refOf, shown, type VerbDeps } from './context.ts';
import { parseSelection } from './selectors.ts';
import type { ListOptions } from './verbs.ts';

const TOKEN_EXPIRED =
  'The provided continue parameter is too old to display a consistent list result. You can start ' +
  'a new list without the continue parameter.';

interface Page {
  readonly revision: number;
  /** Key of the last object already told; empty at the start. */
  readonly after: string;
}

export function getObject(
  deps: VerbDeps,
  resource: ApiResource,
  namespace: string,
  name: string,
): JsonObject {
  return shown(resource, mustGet(deps, resource, refOf(resource, namespace, name)));
}

export function listObjects(
  deps: VerbDeps,
  resource: ApiResource,
  options: ListOptions,
): JsonObject {
  const { store } = deps;
  const matches = parseSelection(resource, options);
  const page = startingPage(deps, options);
  const all = store.listAt(resource.storage, options.namespace, page.revision);
  if (all === undefined) throw expired(options.continue ? TOKEN_EXPIRED : tooOld(page, deps));
  const rest = all.filter((object) => keyOf(object) > page.after && matches(object));
  const limit = options.limit !== undefined && options.limit > 0 ? options.limit : rest.length;
  const items = rest.slice(0, limit);
  const last = items.at(-1);
  const remaining = rest.length - items.length;
  const hasSelector = Boolean(options.labelSelector) || Boolean(options.fieldSelector);
  return {
    kind: resource.listKind,
    apiVersion: apiVersionOf(resource),
    metadata: {
      resourceVersion: String(page.revision),
      ...(remaining > 0 &&
        last !== undefined && {
          continue: encodeToken({ revision: page.revision, after: keyOf(last) }),
          // The real server cannot count what a selector would leave, and says nothing.
          ...(!hasSelector && { remainingItemCount: remaining }),
        }),
    },
    items: items.map((object) => shown(resource, object)),
  };
}

function keyOf(object: JsonObject): string {
  return entryKey({ namespace: namespaceOf(object), name: nameOf(object) });
}

/** `resourceVersion` demands at least (or exactly) that state; a token brings its own. */
function startingPage({ store }: VerbDeps, options: ListOptions): Page {
  const { resourceVersion = '', resourceVersionMatch: match = '' } = options;
  if (options.continue) {
    if (resourceVersion !== '' && resourceVersion !== '0') {
      throw badRequest('specifying resource version is not allowed when using continue');
    }
    return decodeToken(options.continue);
  }
  if (match !== '' && resourceVersion === '') {
    throw badRequest('resourceVersionMatch is forbidden unless resourceVersion is provided');
  }
  if (!['', 'Exact', 'NotOlderThan'].includes(match)) {
    throw badRequest(`resourceVersionMatch: Unsupported value: "${match}"`);
  }
  const asked = parseRevision(resourceVersion);
  if (asked > store.revision) throw resourceVersionTooLarge(asked, store.revision);
  if (match !== 'Exact') return { revision: store.revision, after: '' };
  if (asked === 0) {
    throw badRequest('resourceVersionMatch "exact" is forbidden for resourceVersion "0"');
  }
  return { revision: asked, after: '' };
}

/** A resource version as a number; none is 0. */
export function parseRevision(text: string): number {
  if (text === '') return 0;
  const revision = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(revision)) return revision;
  throw badRequest(
    `resourceVersion: Invalid value: ${JSON.stringify(text)}: must be a whole number`,
  );
}

function tooOld({ revision }: Page, { store }: VerbDeps): string {
  return `The resourceVersion for the provided list is too old (${revision} is before ${store.compactedRevision}).`;
}

function encodeToken({ revision, after }: Page): string {
  const token = { v: 'meta.k8s.io/v1', rv: revision, start: after };
  return Buffer.from(JSON.stringify(token)).toString('base64url');
}

function decodeToken(text: string): Page {
  const token = parseJson(Buffer.from(text, 'base64url').toString());
  if (isJsonObject(token)) {
    const { rv, start } = token;
    if (typeof rv === 'number' && Number.isSafeInteger(rv) && typeof start === 'string') {
      return { revision: rv, after: start };
    }
  }
  throw badRequest('continue key is not valid');
}

function parseJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
