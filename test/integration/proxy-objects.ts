/** Proxy objects at an API server, as a person makes them. */
import type { JsonObject } from '#deploy/local/control-plane/json.ts';
import type { KubeClient } from '#deploy/local/kube/client.ts';

export const PROXIES = '/apis/crawl.example.com/v1alpha1/namespaces/default/proxies';

export function createProxy(kube: KubeClient, name: string, spec: JsonObject): Promise<JsonObject> {
  const body = {
    apiVersion: 'crawl.example.com/v1alpha1',
    kind: 'Proxy',
    metadata: { name },
    spec,
  };
  return kube.request({ method: 'POST', path: PROXIES, body });
}
