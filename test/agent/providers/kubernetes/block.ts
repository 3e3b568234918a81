/** A `kubernetes` block as the file of a test would give it, and the Squid of this machine. */
import type { KubernetesProviderConfig } from '#agent/providers/config.ts';
import type { CreateRequest } from '#agent/providers/provider.ts';
import { findSquid } from '#deploy/local/node/squid-image.ts';
import { parsedConfig } from '../parsed-config.ts';

/** Path of the machine's Squid; empty when there is none. */
export const SQUID = findSquid(process.env['PATH'] ?? '') ?? '';

export function configWith(block: object = {}): KubernetesProviderConfig {
  const kubernetes = { image: 'ubuntu/squid:test', ...block };
  const entry = { name: 'local', type: 'kubernetes' as const, kubernetes };
  return parsedConfig(entry);
}

export const request: CreateRequest = {
  name: 'proxy-abcdefghijklmnop',
  uid: 'uid-1',
  installation: 'here',
  namespace: 'crawl',
  proxyName: 'one',
  placement: {},
  port: 3128,
};
