/**
 * Every write to a Proxy. Each one carries the uid and the resource version that it was decided
 * on, so that a decision from a stale cache is refused by the server (Conflict) instead of undoing
 * what somebody else wrote; the next reconcile decides again.
 */
import { FINALIZER, GROUP, VERSION } from '#shared/crd/names.ts';
import type { Proxy, ProxyStatus } from '#shared/crd/proxy.ts';
import { proxySchema } from '#shared/crd/proxy.ts';
import type { KubeClient } from './client.ts';
import { createResource, type ResourceType } from './resource.ts';

export const PROXIES: ResourceType = { group: GROUP, version: VERSION, plural: 'proxies' };

/** Each call returns the object as it is after the write; failures are `KubeError`s. */
export interface ProxyClient {
  addFinalizer(proxy: Proxy, signal: AbortSignal): Promise<Proxy>;
  /** The object may be gone afterwards; what is returned is its last state. */
  removeFinalizer(proxy: Proxy, signal: AbortSignal): Promise<Proxy>;
  /** `undefined` removes the annotation. */
  setAnnotation(
    proxy: Proxy,
    key: string,
    value: string | undefined,
    signal: AbortSignal,
  ): Promise<Proxy>;
  /** Makes the status exactly `status`: what `proxy.status` has besides is removed. */
  patchStatus(proxy: Proxy, status: ProxyStatus, signal: AbortSignal): Promise<Proxy>;
}

export interface ProxyClientDeps {
  readonly client: KubeClient;
  /** Told of every object that a write returned: the informer's `observe`. */
  readonly observe: (proxy: Proxy) => void;
}

/** Parses the API's JSON of a Proxy; throws a ZodError. */
export function parseProxy(object: unknown): Proxy {
  return proxySchema.parse(object);
}

export function createProxyClient({ client, observe }: ProxyClientDeps): ProxyClient {
  const proxies = createResource(client, PROXIES, parseProxy);

  async function patch(
    proxy: Proxy,
    change: { metadata?: object; status?: object },
    signal: AbortSignal,
  ): Promise<Proxy> {
    const { namespace, name, uid, resourceVersion } = proxy.metadata;
    const body = { ...change, metadata: { uid, resourceVersion, ...change.metadata } };
    const type = 'application/merge-patch+json' as const;
    const fresh = await proxies.patch(
      { namespace, name },
      change.status === undefined ? { type, body } : { type, body, subresource: 'status' },
      signal,
    );
    observe(fresh);
    return fresh;
  }

  return {
    async addFinalizer(proxy, signal) {
      const { finalizers } = proxy.metadata;
      if (finalizers.includes(FINALIZER)) return proxy;
      return patch(proxy, { metadata: { finalizers: [...finalizers, FINALIZER] } }, signal);
    },
    async removeFinalizer(proxy, signal) {
      const finalizers = proxy.metadata.finalizers.filter((each) => each !== FINALIZER);
      if (finalizers.length === proxy.metadata.finalizers.length) return proxy;
      return patch(proxy, { metadata: { finalizers } }, signal);
    },
    async setAnnotation(proxy, key, value, signal) {
      if (proxy.metadata.annotations[key] === value) return proxy;
      return patch(proxy, { metadata: { annotations: { [key]: value ?? null } } }, signal);
    },
    patchStatus(proxy, status, signal) {
      return patch(proxy, { status: replacing(proxy.status, status) }, signal);
    },
  };
}

/** Merge patch that turns `before` into `after`; only top-level fields can be absent. */
function replacing(before: object, after: object): object {
  const removed = Object.keys(before).map((field) => [field, null]);
  const present = Object.entries(after).filter(([, value]) => value !== undefined);
  return Object.fromEntries([...removed, ...present]);
}
