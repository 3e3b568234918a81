/** What the edge should know of the proxies, from the cache and the verdicts. Pure. */
import type { Verdict } from '#agent/health/verdict-reader.ts';
import type { Condition } from '#shared/crd/condition.ts';
import { objectKey } from '#shared/crd/object-meta.ts';
import type { Proxy } from '#shared/crd/proxy.ts';
import type { Credentials, InventoryEntry } from '#shared/wire/sync.ts';

export interface SnapshotSources {
  readonly proxies: Iterable<Proxy>;
  readonly verdict: (key: string) => Verdict | undefined;
  /** Credentials as last read from the Secret; undefined while they are not. */
  readonly credentials: (namespace: string, secretName: string) => Credentials | undefined;
}

/** Entries by the uid of their Proxy. */
export type Inventory = ReadonlyMap<string, InventoryEntry>;

export function buildInventory(sources: SnapshotSources): Inventory {
  const inventory = new Map<string, InventoryEntry>();
  for (const proxy of sources.proxies) {
    const entry = inventoryEntry(proxy, sources);
    if (entry !== undefined) inventory.set(entry.uid, entry);
  }
  return inventory;
}

/** The entry of one Proxy; undefined while there is no machine that could be leased. */
export function inventoryEntry(
  proxy: Proxy,
  sources: Pick<SnapshotSources, 'verdict' | 'credentials'>,
): InventoryEntry | undefined {
  const reached = proxy.spec.mode === 'External' ? external(proxy, sources) : managed(proxy);
  if (reached === undefined) return undefined;
  const { credentialsMissing, ...address } = reached;
  const { metadata, spec, status } = proxy;
  const verdict = sources.verdict(objectKey(metadata));
  const latencyMillis = verdict?.latencyMillis ?? status.latencyMillis;
  const egressIP = verdict?.egressIP ?? status.egressIP;
  return {
    uid: metadata.uid,
    namespace: metadata.namespace,
    name: metadata.name,
    ...address,
    attributes: spec.attributes ?? {},
    maxLeases: spec.maxLeases,
    // Without its credentials nobody can use it, whatever was found before.
    healthy: credentialsMissing ? null : healthy(proxy, verdict),
    ...(latencyMillis === undefined ? {} : { latencyMillis: Math.max(latencyMillis, 0) }),
    ...(egressIP === undefined ? {} : { egressIP }),
    leasable: spec.leasable,
    draining: metadata.deletionTimestamp !== undefined || DRAINING_PHASES.has(status.phase),
  };
}

const DRAINING_PHASES: ReadonlySet<string | undefined> = new Set([
  'Draining',
  'Replacing',
  'Deleting',
]);

type Address = Pick<InventoryEntry, 'instance' | 'host' | 'port' | 'protocol' | 'credentials'> & {
  readonly credentialsMissing: boolean;
};

function external(
  proxy: Proxy,
  sources: Pick<SnapshotSources, 'credentials'>,
): Address | undefined {
  const { endpoint } = proxy.spec;
  if (endpoint === undefined) return undefined;
  const { host, port, protocol, authSecretRef } = endpoint;
  const address = { instance: `${host}:${port}`, host, port, protocol };
  if (authSecretRef === undefined) return { ...address, credentialsMissing: false };
  const credentials = sources.credentials(proxy.metadata.namespace, authSecretRef.name);
  return credentials === undefined
    ? { ...address, credentialsMissing: true }
    : { ...address, credentials, credentialsMissing: false };
}

function managed(proxy: Proxy): Address | undefined {
  const { ip, port, providerID } = proxy.status;
  if (ip === undefined) return undefined;
  // A machine that is made again keeps its id; the time at which it was ready tells them apart.
  const since = condition(proxy, 'Provisioned')?.lastTransitionTime ?? '';
  return {
    instance: `${providerID ?? ''}@${since}`,
    host: ip,
    port: port ?? proxy.spec.port,
    protocol: 'http',
    credentialsMissing: false,
  };
}

/** Reasons that the controller sets when the provider says that the machine does not run. */
const INSTANCE_DOWN_REASONS: ReadonlySet<string> = new Set([
  'InstanceStopped',
  'InstanceTerminated',
]);

function healthy(proxy: Proxy, verdict: Verdict | undefined): boolean | null {
  const represented = condition(proxy, 'Healthy');
  if (represented?.status === 'False' && INSTANCE_DOWN_REASONS.has(represented.reason)) {
    return false;
  }
  return verdict?.healthy ?? null;
}

function condition(proxy: Proxy, type: string): Condition | undefined {
  return proxy.status.conditions?.find((each) => each.type === type);
}
