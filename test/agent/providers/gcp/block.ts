/** A `gcp` block as the file of a test would give it, and a request for an instance. */
import type { GcpProviderConfig } from '#agent/providers/config.ts';
import type { CreateRequest } from '#agent/providers/provider.ts';
import { IMAGE, PROJECT } from '#test/fakes/compute/server.ts';
import { parsedConfig } from '../parsed-config.ts';

export function configWith(block: object = {}, name = 'gcp-eu'): GcpProviderConfig {
  const entry = { name, type: 'gcp' as const, gcp: { project: PROJECT, ...block } };
  return parsedConfig(entry);
}

export const request: CreateRequest = {
  name: 'proxy-abcdefghijklmnop',
  uid: '0d8d4a3c-7c2f-4a57-9a55-0e8a7a3f1a11',
  installation: 'here',
  namespace: 'crawl',
  proxyName: 'one',
  placement: { zone: 'europe-west1-b', machineType: 'e2-micro', image: IMAGE },
  port: 3128,
  generation: 1,
};

export const ID = 'zones/europe-west1-b/instances/proxy-abcdefghijklmnop';
