/** Which proxies are probed, and how: from the Proxy object to a probe target. Pure. */
import { objectKey } from '#shared/crd/object-meta.ts';
import type { Proxy, ProxyProtocol } from '#shared/crd/proxy.ts';
import { findCondition, INSTANCE_DOWN_REASONS, machineIdentity } from '#shared/crd/proxy-status.ts';
import type { Credentials } from '#shared/wire/sync.ts';
import type { Thresholds, Verdict } from './verdict.ts';

export interface ProbeTarget extends Thresholds {
  /** `namespace/name`. */
  readonly key: string;
  /** Changes when what is probed does; health of the old one says nothing on the new one. */
  readonly identity: string;
  readonly protocol: ProxyProtocol;
  readonly host: string;
  readonly port: number;
  readonly credentials?: Credentials;
  /** What is fetched through the proxy. */
  readonly url: string;
  /** The URL is the edge's echo page, which tells the egress address. */
  readonly echo: boolean;
  readonly expectedStatus: number;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** What an earlier leader found, as it stands in the status; absent when nobody knows. */
  readonly seed?: Verdict;
}

export interface TargetOptions {
  /** Full URL of the edge's echo page. */
  readonly echoUrl: string;
  /** Credentials as last read from the Secret; undefined while they are not. */
  readonly credentials: (namespace: string, secretName: string) => Credentials | undefined;
}

/**
 * The target to probe, or undefined when there is none: the proxy has no address yet, is being
 * deleted, or its credentials are not known yet. A paused proxy is probed like any other.
 */
export function probeTarget(proxy: Proxy, options: TargetOptions): ProbeTarget | undefined {
  if (proxy.metadata.deletionTimestamp !== undefined) return undefined;
  const reached =
    proxy.spec.mode === 'External' ? externalAddress(proxy, options) : managedAddress(proxy);
  if (reached === undefined) return undefined;
  const check = proxy.spec.healthCheck;
  const seed = seedVerdict(proxy);
  return {
    key: objectKey(proxy.metadata),
    ...reached,
    url: check.url ?? options.echoUrl,
    echo: check.url === undefined || check.url === options.echoUrl,
    expectedStatus: check.expectedStatus,
    intervalMs: check.intervalSeconds * 1000,
    timeoutMs: check.timeoutSeconds * 1000,
    successThreshold: check.successThreshold,
    failureThreshold: check.failureThreshold,
    ...(seed === undefined ? {} : { seed }),
  };
}

type Address = Pick<ProbeTarget, 'identity' | 'protocol' | 'host' | 'port' | 'credentials'>;

function externalAddress(proxy: Proxy, options: TargetOptions): Address | undefined {
  const endpoint = proxy.spec.endpoint;
  if (endpoint === undefined) return undefined;
  const { host, port, protocol, authSecretRef } = endpoint;
  const identity = `${proxy.metadata.uid} ${protocol}://${host}:${port}`;
  const address = { identity, protocol, host, port };
  if (authSecretRef === undefined) return address;
  const credentials = options.credentials(proxy.metadata.namespace, authSecretRef.name);
  return credentials === undefined ? undefined : { ...address, credentials };
}

function managedAddress(proxy: Proxy): Address | undefined {
  const { ip, providerID } = proxy.status;
  if (ip === undefined || providerID === undefined) return undefined;
  const port = proxy.status.port ?? proxy.spec.port;
  const identity = `${proxy.metadata.uid} ${machineIdentity(proxy.status)} ${ip}:${port}`;
  return { identity, protocol: 'http', host: ip, port };
}

function seedVerdict(proxy: Proxy): Verdict | undefined {
  const healthy = findCondition(proxy.status, 'Healthy');
  if (healthy === undefined || healthy.status === 'Unknown') return undefined;
  // What the provider said is no verdict of probes to start from.
  if (INSTANCE_DOWN_REASONS.has(healthy.reason)) return undefined;
  const { latencyMillis, egressIP, lastHealthCheckTime } = proxy.status;
  return {
    healthy: healthy.status === 'True',
    reason: healthy.reason,
    message: healthy.message,
    probedAtMs: Date.parse(lastHealthCheckTime ?? healthy.lastTransitionTime),
    ...(latencyMillis === undefined ? {} : { latencyMillis }),
    ...(egressIP === undefined ? {} : { egressIP }),
  };
}
