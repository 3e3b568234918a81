/** What the agent changes at an API server, by kind; reading and telling (events) change nothing. */
import type { ApiCall } from '#test/integration/api-proxy.ts';

export const SIDE_EFFECTS = [
  'finalizer set',
  'intent annotated',
  'pod created',
  'ConfigMap created',
  'status written',
  'pod deleted',
  'finalizer removed',
] as const;
export type SideEffect = (typeof SIDE_EFFECTS)[number];

const PROXY = /\/proxies\/[^/]+$/;

/** undefined for everything else, events and leases among it. */
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
