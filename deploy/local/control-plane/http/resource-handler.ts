/** Requests on resources: from path, query and body to a verb, and from its result to an answer. */
import { methodNotAllowed, noSuchEndpoint } from '../api/status-error.ts';
import type { PatchOptions, WriteResult } from '../api/verbs/verbs.ts';
import type { JsonObject } from '../json.ts';
import { type ApiResource, isPods } from '../registry/api-resource.ts';
import { hasEnded } from '../registry/strategies/pod.ts';
import { parseObject, parseOptionalObject, parsePatch, readBody } from './body.ts';
import { type Exchange, type HandlerDeps, header } from './exchange.ts';
import { encodingFor, presentationFor } from './negotiation.ts';
import { bindPod } from './pod-binding.ts';
import { assertLogged, sendPodLog } from './pod-log.ts';
import { createPresenter, includeObjectOf, type Presenter } from './presentation.ts';
import { deleteOptions, listOptions, managerOfAgent, watchOptions, writeOptions } from './query.ts';
import type { ResourceRequest } from './request-info.ts';
import { sendObject } from './response.ts';
import { answerReview, findReview, type Review } from './reviews.ts';
import { streamWatch } from './watch-stream.ts';

/** Watches without a time limit get one between this and its double, so that they spread. */
const WATCH_SECONDS_MIN = 1800;

/** Answers a request on a resource that the user may make. */
export async function handleResource(
  deps: HandlerDeps,
  exchange: Exchange,
  info: ResourceRequest,
): Promise<void> {
  const review = findReview(info.group, info.version, info.plural);
  if (review !== undefined) return await handleReview(deps, exchange, info, review);
  const resource = deps.registry.find(info.group, info.version, info.plural);
  if (resource === undefined || !isRoutable(resource, info)) throw noSuchEndpoint();
  if (isEverywhere(resource, info) && !['list', 'watch'].includes(info.verb)) {
    throw methodNotAllowed();
  }
  if (info.subresource === 'log') return await handleLog(deps, exchange, info, resource);
  if (info.subresource === 'binding') return await handleBinding(deps, exchange, info, resource);
  if (info.subresource !== '') assertStatus(resource, info);
  switch (info.verb) {
    case 'get':
    case 'list':
      sendRead(deps, exchange, info, resource);
      return;
    case 'watch':
      return await handleWatch(deps, exchange, info, resource);
    default:
      return await handleWrite(deps, exchange, info, resource);
  }
}

/** Names are within a namespace for namespaced resources, and never for others. */
function isRoutable(resource: ApiResource, info: ResourceRequest): boolean {
  const isInNamespace = info.path.split('/').includes('namespaces') && info.namespace !== '';
  if (!resource.namespaced) return !isInNamespace || resource.plural === 'namespaces';
  return isInNamespace || info.verb === 'list' || info.verb === 'watch' || info.name === '';
}

/** All namespaces at once can be read, but nothing is created in or deleted from all of them. */
function isEverywhere(resource: ApiResource, info: ResourceRequest): boolean {
  return resource.namespaced && info.namespace === '' && info.name === '';
}

function assertStatus(resource: ApiResource, info: ResourceRequest): void {
  if (info.subresource !== 'status' || !resource.statusSubresource) throw noSuchEndpoint();
  if (!['get', 'update', 'patch'].includes(info.verb)) throw methodNotAllowed();
}

async function handleReview(
  { authorizer }: HandlerDeps,
  exchange: Exchange,
  info: ResourceRequest,
  review: Review,
): Promise<void> {
  if (info.verb !== 'create' || info.name !== '') throw methodNotAllowed();
  const encoding = encodingFor(header(exchange, 'accept'));
  const body = await readObject(exchange);
  const object = answerReview(review, exchange.user, body, authorizer);
  sendObject(exchange.response, { object, encoding, code: 201 });
}

async function handleLog(
  deps: HandlerDeps,
  exchange: Exchange,
  info: ResourceRequest,
  resource: ApiResource,
): Promise<void> {
  if (!isPods(resource)) throw noSuchEndpoint();
  if (info.verb !== 'get') throw methodNotAllowed();
  const pod = () => deps.verbs.get(resource, info.namespace, info.name);
  assertLogged(pod(), exchange.url.searchParams);
  const isRunning = () => !hasEnded(pod());
  await sendPodLog(exchange, deps.clock, () => deps.podLog(info.namespace, info.name), isRunning);
}

async function handleBinding(
  deps: HandlerDeps,
  exchange: Exchange,
  info: ResourceRequest,
  resource: ApiResource,
): Promise<void> {
  if (!isPods(resource)) throw noSuchEndpoint();
  if (info.verb !== 'create') throw methodNotAllowed();
  const binding = await readObject(exchange);
  bindPod(deps.verbs, resource, info, binding, ownedOptions(exchange));
  const encoding = encodingFor(header(exchange, 'accept'));
  const object = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
  sendObject(exchange.response, { object, encoding, code: 201 });
}

async function readObject(exchange: Exchange): Promise<JsonObject> {
  const body = await readBody(exchange.request, exchange.signal);
  return parseObject(body, header(exchange, 'content-type'));
}

function presenterFor(
  deps: HandlerDeps,
  exchange: Exchange,
  resource: ApiResource,
): { readonly presenter: Presenter; readonly encoding: 'json' | 'yaml' } {
  const presentation = presentationFor(header(exchange, 'accept'));
  const includeObject = includeObjectOf(exchange.url.searchParams);
  const nowMs = () => deps.clock.now();
  return {
    presenter: createPresenter(resource, { presentation, includeObject, nowMs }),
    encoding: presentation.encoding,
  };
}

function sendRead(
  deps: HandlerDeps,
  exchange: Exchange,
  info: ResourceRequest,
  resource: ApiResource,
): void {
  const { presenter, encoding } = presenterFor(deps, exchange, resource);
  const query = exchange.url.searchParams;
  const object =
    info.verb === 'list'
      ? deps.verbs.list(resource, listOptions(query, info, resource.namespaced))
      : deps.verbs.get(resource, storageNamespace(resource, info), info.name);
  sendObject(exchange.response, { object: presenter.object(object), encoding });
}

/** A namespace is asked about by its own name, but does not live in itself. */
function storageNamespace(resource: ApiResource, info: ResourceRequest): string {
  return resource.namespaced ? info.namespace : '';
}

async function handleWatch(
  deps: HandlerDeps,
  exchange: Exchange,
  info: ResourceRequest,
  resource: ApiResource,
): Promise<void> {
  const { presenter } = presenterFor(deps, exchange, resource);
  const asked = watchOptions(exchange.url.searchParams, info, resource.namespaced);
  const timeoutSeconds = asked.timeoutSeconds || WATCH_SECONDS_MIN * (1 + deps.random());
  const selected =
    info.name === '' || asked.fieldSelector !== undefined
      ? asked
      : { ...asked, fieldSelector: `metadata.name=${info.name}` };
  const { signal } = exchange;
  const events = deps.verbs.watch(resource, { ...selected, timeoutSeconds }, signal);
  await streamWatch(exchange.response, { events, presenter, clock: deps.clock, signal });
}

async function handleWrite(
  deps: HandlerDeps,
  exchange: Exchange,
  info: ResourceRequest,
  resource: ApiResource,
): Promise<void> {
  const { presenter, encoding } = presenterFor(deps, exchange, resource);
  const body = await readBody(exchange.request, exchange.signal);
  const result = write(deps, exchange, info, resource, body);
  sendObject(exchange.response, {
    object: presenter.object(result.object),
    encoding,
    code: result.created === true ? 201 : 200,
    warnings: result.warnings,
  });
}

function write(
  { verbs }: HandlerDeps,
  exchange: Exchange,
  info: ResourceRequest,
  resource: ApiResource,
  body: Buffer | undefined,
): WriteResult {
  const query = exchange.url.searchParams;
  const contentType = header(exchange, 'content-type');
  const namespace = storageNamespace(resource, info);
  switch (info.verb) {
    case 'create': {
      if (info.name !== '') throw methodNotAllowed();
      const options = ownedOptions(exchange);
      const result = verbs.create(resource, namespace, parseObject(body, contentType), options);
      return { ...result, created: true };
    }
    case 'update': {
      const options = { ...ownedOptions(exchange), ...subresourceOf(info) };
      return verbs.update(resource, namespace, info.name, parseObject(body, contentType), options);
    }
    case 'patch': {
      const { patchType, patch } = parsePatch(body, contentType);
      const owned = patchType === 'apply' ? writeOptions(query) : ownedOptions(exchange);
      const options = { ...owned, ...subresourceOf(info) };
      return verbs.patch(resource, namespace, info.name, patchType, patch, options);
    }
    default: {
      const options = deleteOptions(query, parseOptionalObject(body, contentType));
      if (info.verb === 'delete') return verbs.delete(resource, namespace, info.name, options);
      const selection = listOptions(query, info, resource.namespaced);
      return verbs.deleteCollection(resource, selection, options);
    }
  }
}

/** Writes that name no manager are owned by the program that made them. */
function ownedOptions(exchange: Exchange): PatchOptions {
  const options = writeOptions(exchange.url.searchParams);
  return {
    ...options,
    fieldManager: options.fieldManager ?? managerOfAgent(header(exchange, 'user-agent')),
  };
}

function subresourceOf({ subresource }: ResourceRequest): { readonly subresource?: 'status' } {
  return subresource === 'status' ? { subresource } : {};
}
