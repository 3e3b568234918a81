/** From method and path to what a request is about, as the API's paths are built. */

/** A path such as /healthz or /apis. */
export interface PathRequest {
  readonly type: 'path';
  /** The method in lower case, as rules on paths name it. */
  readonly verb: string;
  readonly path: string;
}

/** A path under a group version. */
export interface ResourceRequest {
  readonly type: 'resource';
  readonly verb: ResourceVerb;
  readonly path: string;
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly subresource: string;
  /** For a namespace itself its own name. Empty: all, or none. */
  readonly namespace: string;
  readonly name: string;
}

export type RequestInfo = PathRequest | ResourceRequest;

export type ResourceVerb =
  | 'get'
  | 'list'
  | 'watch'
  | 'create'
  | 'update'
  | 'patch'
  | 'delete'
  | 'deletecollection';

const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);

/** What the request asks for; undefined for a path that is not well-formed. */
export function requestInfo(method: string, url: URL): RequestInfo | undefined {
  let segments: string[];
  try {
    segments = url.pathname.split('/').filter(Boolean).map(decodeURIComponent);
  } catch {
    return undefined;
  }
  const parts = resourceParts(segments);
  const path = url.pathname;
  if (parts === undefined) return { type: 'path', verb: method.toLowerCase(), path };
  const verb = resourceVerb(method, parts.name, url.searchParams);
  if (verb === undefined) return { type: 'path', verb: method.toLowerCase(), path };
  const selected =
    verb === 'list' || verb === 'watch' || verb === 'deletecollection'
      ? nameOfSelector(url.searchParams.get('fieldSelector'))
      : undefined;
  return { type: 'resource', verb, path, ...parts, name: selected ?? parts.name };
}

type Parts = Pick<
  ResourceRequest,
  'group' | 'version' | 'plural' | 'subresource' | 'namespace' | 'name'
>;

function resourceParts(segments: readonly string[]): Parts | undefined {
  const [root, first = '', second = ''] = segments;
  const isCore = root === 'api';
  if (!isCore && root !== 'apis') return undefined;
  const group = isCore ? '' : first;
  const version = isCore ? first : second;
  const rest = segments.slice(isCore ? 2 : 3);
  const [kind, namespace = '', ...inside] = rest;
  if (kind === undefined) return undefined;
  const isInNamespace =
    kind === 'namespaces' && inside.length > 0 && !NAMESPACE_SUBRESOURCES.has(inside[0] ?? '');
  const [plural = '', name = '', subresource = '', ...more] = isInNamespace ? inside : rest;
  if (more.length > 0) return undefined;
  const own = plural === 'namespaces' ? name : '';
  return { group, version, plural, name, subresource, namespace: isInNamespace ? namespace : own };
}

function resourceVerb(
  method: string,
  name: string,
  query: URLSearchParams,
): ResourceVerb | undefined {
  switch (method) {
    case 'GET':
    case 'HEAD':
      if (isTrue(query.get('watch'))) return 'watch';
      return name === '' ? 'list' : 'get';
    case 'POST':
      return 'create';
    case 'PUT':
      return 'update';
    case 'PATCH':
      return 'patch';
    case 'DELETE':
      return name === '' ? 'deletecollection' : 'delete';
    default:
      return undefined;
  }
}

/** Query parameters are true unless they say otherwise: `?watch` alone counts. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== 'false' && value !== '0';
}

/** A list of one name is what a rule with `resourceNames` can allow. */
function nameOfSelector(selector: string | null): string | undefined {
  const terms = selector?.split(',') ?? [];
  const names = terms.flatMap((term) => /^metadata\.name==?([^=].*)$/.exec(term.trim())?.[1] ?? []);
  return names.length === 1 ? names[0] : undefined;
}
