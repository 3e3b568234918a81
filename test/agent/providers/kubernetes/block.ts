/** A `kubernetes` block as the file of a test would give it, and the Squid of this machine. */
import { type KubernetesProviderConfig, parseProvidersConfig } from '#agent/providers/config.ts';
import type { CreateRequest } from '#agent/providers/provider.ts';
import { findSquid } from '#deploy/local/node/squid-image.ts';

/** Path of the machine's Squid; empty when there is none. */
export const SQUID = findSquid(process.env['PATH'] ?? '') ?? '';

export function configWith(block: object = {}): KubernetesProviderConfig {
  const kubernetes = { image: 'ubuntu/squid:test', ...block };
  const entry = { name: 'local', type: 'kubernetes', kubernetes };
  const parsed = parseProvidersConfig(JSON.stringify({ providers: [entry] }));
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const [config] = parsed.providers;
  if (config?.type !== 'kubernetes') throw new Error('no provider');
  return config;
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
