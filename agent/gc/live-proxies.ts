/** The Proxies as the API server has them at this moment, for judgments a cache is too old for. */
import { z } from 'zod';
import type { KubeClient } from '#agent/kube/client.ts';
import { PROXIES } from '#agent/kube/proxies.ts';
import { createResource } from '#agent/kube/resource.ts';

/** The uid alone: a Proxy that the schema refuses owns its machine nevertheless. */
const uidSchema = z
  .object({ metadata: z.object({ uid: z.string().min(1) }) })
  .transform(({ metadata }) => metadata.uid);

/**
 * Gives the UIDs of all Proxies (of `namespace`, when it is set), being deleted and paused ones
 * included, by a consistent read; or throws, and never gives a part.
 */
export function createLiveProxies(
  client: KubeClient,
  namespace?: string,
): (signal: AbortSignal) => Promise<readonly string[]> {
  const proxies = createResource(client, PROXIES, (object) => uidSchema.parse(object));
  return (signal) => proxies.list(namespace === undefined ? {} : { namespace }, signal);
}
