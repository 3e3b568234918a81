/** Requests on paths that are no resources: health, version, discovery, OpenAPI. */
import { methodNotAllowed, noSuchEndpoint } from '../api/status-error.ts';
import type { JsonObject } from '../json.ts';
import type { ResourceRegistry } from '../registry/resource-registry.ts';
import {
  aggregatedDiscovery,
  apiGroup,
  apiGroupList,
  coreVersions,
  resourceList,
  versionInfo,
} from './discovery.ts';
import { type Exchange, type HandlerDeps, header } from './exchange.ts';
import { acceptedRanges, encodingFor, JSON_TYPE } from './negotiation.ts';
import type { OpenApiEndpoints } from './openapi-endpoints.ts';
import { sendObject, sendText } from './response.ts';

const HEALTH_PATHS = new Set(['/healthz', '/livez', '/readyz']);
const DISCOVERY_GROUP = 'apidiscovery.k8s.io';
const DISCOVERY_VERSIONS = ['v2', 'v2beta1'];

/** Answers a GET of a path that the user may read. */
export function handlePath(
  { registry }: HandlerDeps,
  openApi: OpenApiEndpoints,
  exchange: Exchange,
): void {
  const { request, response } = exchange;
  if (request.method !== 'GET' && request.method !== 'HEAD') throw methodNotAllowed();
  const path = exchange.url.pathname.replace(/(?<=.)\/$/, '');
  if (HEALTH_PATHS.has(path)) sendText(response, 'ok');
  else if (path.startsWith('/openapi/')) openApi.handle(exchange, path);
  else if (path === '/api' || path === '/apis') sendRoot(registry, exchange, path.slice(1));
  else sendJson(exchange, documentAt(registry, path));
}

function documentAt(registry: ResourceRegistry, path: string): JsonObject {
  if (path === '/version') return versionInfo();
  const [, root, ...rest] = path.split('/');
  let object: JsonObject | undefined;
  if (root === 'api' && rest.length === 1) object = resourceList(registry, '', rest[0] ?? '');
  if (root === 'apis') {
    const [group = '', version] = rest;
    if (rest.length === 1) object = apiGroup(registry, group);
    if (rest.length === 2) object = resourceList(registry, group, version ?? '');
  }
  if (object === undefined) throw noSuchEndpoint();
  return object;
}

function sendJson(exchange: Exchange, object: JsonObject): void {
  const encoding = encodingFor(header(exchange, 'accept'));
  sendObject(exchange.response, { object, encoding });
}

function sendRoot(registry: ResourceRegistry, exchange: Exchange, root: string): void {
  const version = aggregatedVersion(header(exchange, 'accept'));
  if (version === undefined) {
    const isCore = root === 'api';
    const address = exchange.request.headers.host ?? '';
    sendJson(exchange, isCore ? coreVersions(address) : apiGroupList(registry));
    return;
  }
  sendObject(exchange.response, {
    object: aggregatedDiscovery(registry, version, root === 'api' ? 'api' : 'apis'),
    contentType: `${JSON_TYPE};g=${DISCOVERY_GROUP};v=${version};as=APIGroupDiscoveryList`,
  });
}

/** The version of aggregated discovery that is wanted more than the old form. */
function aggregatedVersion(accept: string): string | undefined {
  for (const { type, parameters } of acceptedRanges(accept)) {
    const version = parameters.get('v') ?? '';
    const isAggregated =
      parameters.get('as') === 'APIGroupDiscoveryList' &&
      parameters.get('g') === DISCOVERY_GROUP &&
      DISCOVERY_VERSIONS.includes(version);
    if (type === JSON_TYPE && isAggregated) return version;
    if (!parameters.has('as')) return undefined;
  }
  return undefined;
}
