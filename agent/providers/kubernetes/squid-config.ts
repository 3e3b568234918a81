/**
 * The configuration of one Squid: a forward proxy for known clients that stores nothing, adds
 * nothing to what it forwards, and writes nothing to disk. Pure text; valid for Squid 5 and newer.
 */
import type { KubernetesBlock } from '../config-kubernetes.ts';

export type SquidPolicy = Pick<
  KubernetesBlock,
  'allowedClients' | 'allowedPorts' | 'deniedDestinations'
>;

/** Squid's own default of half a minute and more outlasts the patience of probes and crawlers. */
const DNS_TIMEOUT_SECONDS = 5;
const CONNECT_TIMEOUT_SECONDS = 10;
/** Two for each connection that is passed through; what the runtime allows less is taken. */
const FILE_DESCRIPTORS_MAX = 16_384;

/**
 * @param hostname what Squid calls itself in its error pages.
 * @returns the text of `squid.conf`, with `http_port <port>` on a line of its own.
 */
export function squidConfig(port: number, hostname: string, policy: SquidPolicy): string {
  return `${[
    `http_port ${port}`,
    `visible_hostname ${hostname}`,
    '',
    '# Who may use it, and for what. The first line that matches decides.',
    ...values('acl clients src', policy.allowedClients),
    ...values('acl allowed_ports port', policy.allowedPorts),
    ...values('acl denied_destinations dst', policy.deniedDestinations),
    'http_access deny manager',
    'http_access deny !clients',
    'http_access deny !allowed_ports',
    ...(policy.deniedDestinations.length > 0 ? ['http_access deny denied_destinations'] : []),
    'http_access allow clients',
    'http_access deny all',
    '',
    '# What is fetched is not kept.',
    'cache deny all',
    'cache_mem 8 MB',
    'memory_pools off',
    '',
    '# Requests leave as they came: nothing tells of the proxy or of the client behind it.',
    'via off',
    'forwarded_for delete',
    '',
    '# One process in a container: no files, no helpers. What is fetched is nobody else’s business,',
    '# so it is not logged; what goes wrong is, on stderr.',
    'access_log none',
    'cache_log /dev/stderr',
    'cache_store_log none',
    'logfile_rotate 0',
    'pid_filename none',
    'coredump_dir none',
    'netdb_filename none',
    'pinger_enable off',
    'digest_generation off',
    '',
    `dns_timeout ${DNS_TIMEOUT_SECONDS} seconds`,
    `connect_timeout ${CONNECT_TIMEOUT_SECONDS} seconds`,
    '# Leases are drained before a pod is deleted, so there is nothing to wait for.',
    'shutdown_lifetime 1 seconds',
    `max_filedescriptors ${FILE_DESCRIPTORS_MAX}`,
  ].join('\n')}\n`;
}

/** One line for each value: Squid adds them up, and no line grows long. */
function values(directive: string, list: readonly string[]): string[] {
  return list.map((value) => `${directive} ${value}`);
}
