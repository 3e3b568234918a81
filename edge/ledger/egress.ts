/**
 * What a cooldown is kept under. A target bans the address that it sees, so that is the key as
 * soon as it is known: proxies behind one address share its bans, and a replaced machine with a
 * new address starts clean. Until then the key is the machine itself.
 */
import type { InventoryEntry } from '#shared/wire/sync.ts';
import type { ProxyRecord } from './model.ts';

/** Stands for all targets in a cooldown; no host name is empty. */
export const EVERY_TARGET = '';

/** The key under which an offence of the proxy is noted now. */
export function egressOf({ egresses }: Pick<ProxyRecord, 'egresses'>): string {
  const [egress = ''] = egresses;
  return egress;
}

/**
 * The keys whose cooldowns bind the proxy. The machine's own stays among them once its address is
 * known: an offence that was noted before that must not be forgotten by learning the address.
 */
export function egressesOf(cluster: string, entry: InventoryEntry): readonly string[] {
  const machine = machineOf(cluster, entry);
  return entry.egressIP === undefined ? [machine] : [addressOf(entry.egressIP), machine];
}

/** Whether proxies of other shards may be behind the egress. */
export function isAddress(egress: string): boolean {
  return egress.startsWith(ADDRESS);
}

const ADDRESS = 'ip ';

function addressOf(egressIP: string): string {
  return `${ADDRESS}${egressIP.toLowerCase()}`;
}

/** The instance is part of it, so that a replacement does not inherit its predecessor's bans. */
function machineOf(cluster: string, entry: InventoryEntry): string {
  return `proxy ${cluster}/${entry.uid} ${entry.instance}`;
}
