/** What the outside sees of the book's records. */
import type { Lease as LeaseView, ListedProxy } from '#shared/wire/lease.ts';
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { type Lease, loadOf, type ProxyRecord } from './model.ts';

export function leaseView(lease: Lease, proxy: ProxyRecord, nowMs: number): LeaseView {
  const { row } = lease;
  const { entry } = proxy;
  return {
    leaseID: row.id,
    token: row.token,
    proxy: {
      ...placed(proxy),
      url: proxyUrl(entry),
      attributes: entry.attributes,
      ...measured(entry),
    },
    ...(row.target === null ? {} : { target: row.target }),
    ttlSeconds: row.ttlSeconds,
    expiresAt: new Date(row.expiresMs).toISOString(),
    expiresInMs: row.expiresMs - nowMs,
  };
}

/** Without credentials: a listing is for looking, a lease is for using. */
export function listedProxyView(proxy: ProxyRecord, healthy: boolean): ListedProxy {
  const { entry } = proxy;
  return {
    ...placed(proxy),
    attributes: entry.attributes,
    healthy,
    ...measured(entry),
    activeLeases: loadOf(proxy),
    maxLeases: entry.maxLeases,
    leasable: entry.leasable,
    draining: entry.draining,
  };
}

/** `protocol://[user:password@]host:port`, with every part fit for a URL. */
export function proxyUrl(
  entry: Pick<InventoryEntry, 'protocol' | 'host' | 'port' | 'credentials'>,
): string {
  const { protocol, port, credentials } = entry;
  const host =
    entry.host.includes(':') && !entry.host.startsWith('[') ? `[${entry.host}]` : entry.host;
  const userinfo =
    credentials === undefined
      ? ''
      : `${percentEncode(credentials.username)}:${percentEncode(credentials.password)}@`;
  return `${protocol}://${userinfo}${host}:${port}`;
}

/** All but RFC 3986's unreserved characters; `encodeURIComponent` leaves five of the others. */
function percentEncode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Which proxy it is and where it is reached. */
function placed({ cluster, entry }: ProxyRecord) {
  const { namespace, name, host, port, protocol } = entry;
  return { cluster: cluster.name, namespace, name, host, port, protocol };
}

function measured(entry: InventoryEntry): Pick<InventoryEntry, 'egressIP' | 'latencyMillis'> {
  return {
    ...(entry.egressIP === undefined ? {} : { egressIP: entry.egressIP }),
    ...(entry.latencyMillis === undefined ? {} : { latencyMillis: entry.latencyMillis }),
  };
}
