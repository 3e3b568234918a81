/** What the agent changes, by kind; reading and telling (events) change nothing. */
import type { ApiCall } from '#test/integration/api-proxy.ts';

/** At the API server, whatever the provider is. */
export const COMMON_EFFECTS = [
  'finalizer set',
  'intent annotated',
  'status written',
  'finalizer removed',
] as const;

export type SideEffect =
  | (typeof COMMON_EFFECTS)[number]
  | 'pod created'
  | 'ConfigMap created'
  | 'pod deleted'
  | 'instance inserted'
  | 'instance deleted';

const PROXY = /\/proxies\/[^/]+$/;

/** Of a request to an API server; undefined for the rest, events and leases among it. */
export function sideEffectOf({ method, path, body }: ApiCall): SideEffect | undefined {
  if (method === 'POST' && path.endsWith('/namespaces/default/pods')) return 'pod created';
  if (method === 'POST' && path.endsWith('/namespaces/default/configmaps')) {
    return 'ConfigMap created';
  }
  if (method === 'DELETE' && path.includes('/pods/')) return 'pod deleted';
  if (method !== 'PATCH') return undefined;
  if (path.endsWith('/status')) return 'status written';
  if (!PROXY.test(path)) return undefined;
  if (body.includes('"annotations"')) return 'intent annotated';
  return body.includes('"finalizers":[]') ? 'finalizer removed' : 'finalizer set';
}
