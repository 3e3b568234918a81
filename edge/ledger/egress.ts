/**
 * What a cooldown is kept under. A target bans the address that it sees, so that is the key as
 * soon as it is known: proxies behind one address share its bans, and a replaced machine with a
 * new address starts clean. Until then the key is the machine itself.
 */
import type { InventoryEntry } from '#shared/wire/sync.ts';

/** Stands for all targets in a cooldown; no host name is empty. */
export const EVERY_TARGET = '';

/** The key under which an offence of the proxy is noted now. */
export function egressOf(cluster: string, entry: InventoryEntry): string {
  return entry.egressIP === undefined ? machineOf(cluster, entry) : addressOf(entry.egressIP);
}

/**
 * The keys whose cooldowns bind the proxy. The machine's own stays among them once its address is
 * known: an offence that was noted before that must not be forgotten by learning the address.
 */
export function egressesOf(cluster: string, entry: InventoryEntry): readonly string[] {
  const machine = machineOf(cluster, entry);
  return entry.egressIP === undefined ? [machine] : [addressOf(entry.egressIP), machine];
}

function addressOf(egressIP: string): string {
  return `ip ${egressIP.toLowerCase()}`;
}

/** The instance is part of it, so that a replacement does not inherit its predecessor's bans. */
function machineOf(cluster: string, entry: InventoryEntry): string {
  return `proxy ${cluster}/${entry.uid} ${entry.instance}`;
}
