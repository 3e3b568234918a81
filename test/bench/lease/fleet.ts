/** The fleet that is leased: the same proxies for every server under measurement. */
import type { InventoryEntry } from '#shared/wire/sync.ts';
import { inventoryEntry } from '#test/edge/inventory-entry.ts';

/** Share of the proxies that hold a lease while others are handed out. */
export const USED_SHARE = 0.3;
/** One that holds until the benchmark is over. */
export const HOLD_TTL_SECONDS = 3_600;
const REGIONS = ['eu-west', 'eu-north', 'us-east', 'us-west', 'ap-south'];

/** Proxy number `index` of any fleet. */
export function proxyEntry(index: number): InventoryEntry {
  const number = String(index).padStart(6, '0');
  return inventoryEntry(`proxy-${number}`, {
    maxLeases: maxLeasesOf(index),
    host: `10.${index >> 16}.${(index >> 8) & 0xff}.${index & 0xff}`,
    egressIP: `100.${64 + (index >> 16)}.${(index >> 8) & 0xff}.${index & 0xff}`,
    attributes: { region: REGIONS[index % REGIONS.length] ?? '', provider: 'bench' },
    latencyMillis: 20 + ((index * 7919) % 400),
  });
}

/** Two on average. */
export const maxLeasesOf = (index: number) => 3 - (index % 3);
