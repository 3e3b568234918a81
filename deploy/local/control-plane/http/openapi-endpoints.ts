/** /openapi/v2 and /openapi/v3, made on demand and kept until the set of resources changes. */
import { createHash } from 'node:crypto';
import { noSuchEndpoint, notAcceptable } from '../api/status-error.ts';
import { OPENAPI_V2_PROTOBUF, OPENAPI_V2_PROTOBUF_CONTENT_TYPE, openApiV2 } from '../openapi/v2.ts';
import { openApiV3, openApiV3Index } from '../openapi/v3.ts';
import type { ResourceRegistry } from '../registry/resource-registry.ts';
import { type Exchange, header } from './exchange.ts';
import { acceptedRanges, coversJson, JSON_TYPE } from './negotiation.ts';
import { send } from './response.ts';

export interface OpenApiEndpoints {
  handle(exchange: Exchange, path: string): void;
}

interface Document {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  readonly etag: string;
}

/** The documents are large, so each is made when first asked for, and again after a change. */
export function createOpenApiEndpoints(registry: ResourceRegistry): OpenApiEndpoints {
  const documents = new Map<string, Document>();
  let generation = registry.generation;
  const cached = (key: string, make: () => Document): Document => {
    if (generation !== registry.generation) documents.clear();
    generation = registry.generation;
    const document = documents.get(key) ?? make();
    documents.set(key, document);
    return document;
  };
  return {
    handle: (exchange, path) => {
      const document =
        path === '/openapi/v2'
          ? documentV2(registry, cached, header(exchange, 'accept'))
          : documentV3(registry, cached, path, header(exchange, 'accept'));
      sendDocument(exchange, document);
    },
  };
}

type Cached = (key: string, make: () => Document) => Document;

function documentV2(registry: ResourceRegistry, cached: Cached, accept: string): Document {
  for (const range of acceptedRanges(accept)) {
    const { type } = range;
    if (type === OPENAPI_V2_PROTOBUF || type === OPENAPI_V2_PROTOBUF_CONTENT_TYPE) {
      return cached('v2 protobuf', () =>
        documentOf(OPENAPI_V2_PROTOBUF_CONTENT_TYPE, openApiV2(registry.all()).protobuf()),
      );
    }
    if (coversJson(range)) {
      return cached('v2 json', () => jsonDocument(openApiV2(registry.all()).document));
    }
  }
  throw notAcceptable([JSON_TYPE, OPENAPI_V2_PROTOBUF]);
}

function documentV3(
  registry: ResourceRegistry,
  cached: Cached,
  path: string,
  accept: string,
): Document {
  if (!acceptedRanges(accept).some(coversJson)) throw notAcceptable([JSON_TYPE]);
  if (path === '/openapi/v3') {
    return cached('v3', () => jsonDocument(openApiV3Index(registry.all())));
  }
  const match = /^\/openapi\/v3\/(?:api|apis\/([^/]+))\/([^/]+)$/.exec(path);
  const [, group = '', version = ''] = match ?? [];
  const isServed = registry.inGroupVersion(group, version).length > 0;
  if (match === null || !isServed) throw noSuchEndpoint();
  return cached(`v3 ${group}/${version}`, () =>
    jsonDocument(openApiV3({ group, version }, registry.all())),
  );
}

function jsonDocument(value: object): Document {
  return documentOf(JSON_TYPE, Buffer.from(JSON.stringify(value)));
}

function documentOf(contentType: string, bytes: Uint8Array): Document {
  const etag = `"${createHash('sha256').update(bytes).digest('hex').toUpperCase()}"`;
  return { contentType, bytes, etag };
}

function sendDocument({ request, response }: Exchange, document: Document): void {
  response.setHeader('etag', document.etag);
  response.setHeader('vary', 'Accept');
  if (request.headers['if-none-match'] === document.etag) {
    response.writeHead(304);
    response.end();
    return;
  }
  send(response, 200, document.contentType, document.bytes);
}
