/** What an agent tells of a proxy: healthy, leasable, and known by its name. */
import { type InventoryEntry, inventoryEntrySchema } from '#shared/wire/sync.ts';

export function inventoryEntry(
  name: string,
  overrides: Partial<InventoryEntry> & Pick<InventoryEntry, 'maxLeases'>,
): InventoryEntry {
  return inventoryEntrySchema.parse({
    uid: `uid-${name}`,
    namespace: 'crawl',
    name,
    instance: `${name}@1`,
    host: `${name}.example`,
    port: 3128,
    protocol: 'http',
    attributes: {},
    healthy: true,
    leasable: true,
    draining: false,
    ...overrides,
  });
}
