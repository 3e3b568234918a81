/** What the edge should know of the proxies, from the cache and the verdicts. Pure. */
import type { Verdict } from '#agent/health/verdict-reader.ts';
import { objectKey } from '#shared/crd/object-meta.ts';
import type { Proxy } from '#shared/crd/proxy.ts';
import { findCondition, INSTANCE_DOWN_REASONS, machineIdentity } from '#shared/crd/proxy-status.ts';
import type { Credentials, InventoryEntry } from '#shared/wire/sync.ts';

export interface SnapshotSources {
  readonly proxies: Iterable<Proxy>;
  readonly verdict: (key: string) => Verdict | undefined;
  /** Credentials as last read from the Secret; undefined while they are not. */
  readonly credentials: (namespace: string, secretName: string) => Credentials | undefined;
}

/** Entries by the uid of their Proxy. */
export type Inventory = ReadonlyMap<string, InventoryEntry>;

/**
 * Builds inventories one after the other. An entry whose sources have not changed is the same
 * object as before, so that a change of one proxy among many costs neither memory nor a comparison
 * of all the others.
 */
export function createInventoryBuilder(): (sources: SnapshotSources) => Inventory {
  const built = new WeakMap<Proxy, Built>();
  return (sources) => {
    const inventory = new Map<string, InventoryEntry>();
    for (const proxy of sources.proxies) {
      const verdict = sources.verdict(objectKey(proxy.metadata));
      const credentials = credentialsFor(proxy, sources);
      let known = built.get(proxy);
      if (known?.verdict !== verdict || !sameCredentials(known?.credentials, credentials)) {
        known = undefined;
      }
      if (known === undefined) {
        const entry = inventoryEntry(proxy, { verdict, credentials });
        known = { verdict, credentials, entry };
        built.set(proxy, known);
      }
      if (known.entry !== undefined) inventory.set(known.entry.uid, known.entry);
    }
    return inventory;
  };
}

/** What is known of a proxy besides its object; the cache replaces objects, never changes them. */
export interface Knowledge {
  readonly verdict: Verdict | undefined;
  readonly credentials: Credentials | undefined;
}

interface Built extends Knowledge {
  readonly entry: InventoryEntry | undefined;
}

function credentialsFor(proxy: Proxy, sources: SnapshotSources): Credentials | undefined {
  const ref = proxy.spec.endpoint?.authSecretRef;
  return ref === undefined ? undefined : sources.credentials(proxy.metadata.namespace, ref.name);
}

function sameCredentials(a: Credentials | undefined, b: Credentials | undefined): boolean {
  return a?.username === b?.username && a?.password === b?.password;
}

/** The entry of one Proxy; undefined while there is no machine that could be leased. */
export function inventoryEntry(proxy: Proxy, known: Knowledge): InventoryEntry | undefined {
  const { verdict } = known;
  const reached = proxy.spec.mode === 'External' ? external(proxy, known) : managed(proxy);
  if (reached === undefined) return undefined;
  const { credentialsMissing, ...address } = reached;
  const { metadata, spec, status } = proxy;
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

function external(proxy: Proxy, { credentials }: Knowledge): Address | undefined {
  const { endpoint } = proxy.spec;
  if (endpoint === undefined) return undefined;
  const { host, port, protocol, authSecretRef } = endpoint;
  const address = { instance: `${host}:${port}`, host, port, protocol };
  return {
    ...address,
    ...(credentials === undefined ? {} : { credentials }),
    credentialsMissing: authSecretRef !== undefined && credentials === undefined,
  };
}

function managed(proxy: Proxy): Address | undefined {
  const { ip, port } = proxy.status;
  if (ip === undefined) return undefined;
  return {
    instance: machineIdentity(proxy.status),
    host: ip,
    port: port ?? proxy.spec.port,
    protocol: 'http',
    credentialsMissing: false,
  };
}

function healthy(proxy: Proxy, verdict: Verdict | undefined): boolean | null {
  const represented = findCondition(proxy.status, 'Healthy');
  if (represented?.status === 'False' && INSTANCE_DOWN_REASONS.has(represented.reason)) {
    return false;
  }
  return verdict?.healthy ?? null;
}
