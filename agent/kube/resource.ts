/** Paths of the Kubernetes API and typed calls on one resource of it. */
import type { KubeClient, PatchType } from './client.ts';
import { KubeError } from './errors.ts';

/** One resource of the API, such as `{ group: '', version: 'v1', plural: 'pods' }`. */
export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
}

export const PODS: ResourceType = { group: '', version: 'v1', plural: 'pods' };
export const SECRETS: ResourceType = { group: '', version: 'v1', plural: 'secrets' };
export const CONFIG_MAPS: ResourceType = { group: '', version: 'v1', plural: 'configmaps' };

/** Name of an object; the namespace is absent for cluster-scoped ones. */
export interface ObjectRef {
  readonly namespace?: string;
  readonly name: string;
}

/** Path of a collection (without `name`) or an object, percent-encoded. */
export function resourcePath(
  type: ResourceType,
  ref: { readonly namespace?: string; readonly name?: string } = {},
  subresource?: string,
): string {
  const root = type.group === '' ? `/api/${type.version}` : `/apis/${type.group}/${type.version}`;
  const segments = [
    ...(ref.namespace ? ['namespaces', ref.namespace] : []),
    type.plural,
    ...(ref.name === undefined ? [] : [ref.name]),
    ...(subresource === undefined ? [] : [subresource]),
  ];
  return `${root}/${segments.map(encodeURIComponent).join('/')}`;
}

export interface ListOptions {
  /** Absent: every namespace. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  /** 409 unless the object is still this one. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/** Calls on one resource. Every answer is parsed; every failure is a `KubeError`. */
export interface ResourceClient<T> {
  get(ref: ObjectRef, signal?: AbortSignal): Promise<T>;
  /** All pages, or an error; never a part. */
  list(options: ListOptions, signal?: AbortSignal): Promise<T[]>;
  create(namespace: string | undefined, body: object, signal?: AbortSignal): Promise<T>;
  patch(ref: ObjectRef, patch: ResourcePatch, signal?: AbortSignal): Promise<T>;
  /** NotFound is thrown like any other failure; the answer's body is not looked at. */
  delete(ref: ObjectRef, options?: DeleteOptions, signal?: AbortSignal): Promise<void>;
}

export interface ResourcePatch {
  readonly type: PatchType;
  readonly body: unknown;
  readonly subresource?: 'status';
}

/** As the reflector of client-go; small enough for one answer, large enough for few of them. */
const LIST_PAGE_SIZE = 500;

export function createResource<T>(
  client: KubeClient,
  type: ResourceType,
  parse: (object: unknown) => T,
): ResourceClient<T> {
  return {
    async get(ref, signal) {
      return parse(await client.request({ path: resourcePath(type, ref) }, signal));
    },
    async list(options, signal) {
      const items: T[] = [];
      const { namespace, ...selectors } = options;
      const path = resourcePath(type, namespace === undefined ? {} : { namespace });
      for await (const page of listPages(client, path, selectors, signal)) {
        for (const item of page.items) items.push(parse(item));
      }
      return items;
    },
    async create(namespace, body, signal) {
      const path = resourcePath(type, namespace === undefined ? {} : { namespace });
      return parse(await client.request({ method: 'POST', path, body }, signal));
    },
    async patch(ref, patch, signal) {
      const path = resourcePath(type, ref, patch.subresource);
      const { body, type: contentType } = patch;
      return parse(await client.request({ method: 'PATCH', path, body, contentType }, signal));
    },
    async delete(ref, options, signal) {
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', ...options };
      await client.request({ method: 'DELETE', path: resourcePath(type, ref), body }, signal);
    },
  };
}

export interface ListPage {
  readonly items: readonly unknown[];
  readonly resourceVersion: string;
  /** Token of the next page; undefined on the last one. */
  readonly continue: string | undefined;
}

/** The pages of a collection, one request each, until the server names no further one. */
export async function* listPages(
  client: KubeClient,
  path: string,
  selectors: Omit<ListOptions, 'namespace'>,
  signal?: AbortSignal,
): AsyncGenerator<ListPage, void, undefined> {
  let token: string | undefined;
  do {
    const query = { ...selectors, limit: LIST_PAGE_SIZE, continue: token };
    const page = parseListPage(await client.request({ path, query }, signal));
    yield page;
    token = page.continue;
  } while (token !== undefined);
}

/** A List of any kind; throws when the answer is not one. */
export function parseListPage(answer: unknown): ListPage {
  const list = isRecord(answer) ? answer : {};
  const metadata = isRecord(list.metadata) ? list.metadata : {};
  if (typeof metadata.resourceVersion !== 'string') {
    throw new KubeError(
      { status: 200, reason: 'Other' },
      'the answer to a list request is not a List',
    );
  }
  const token = metadata.continue;
  return {
    // A Go server may write an empty list as null.
    items: Array.isArray(list.items) ? list.items : [],
    resourceVersion: metadata.resourceVersion,
    continue: typeof token === 'string' && token !== '' ? token : undefined,
  };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
