/** From `placement` of a Proxy to host, image and machine type of the configuration. Pure. */
import type { Placement } from '#shared/crd/proxy.ts';
import type { KvmBlock, KvmHost, KvmImage, KvmMachineType } from '../config-kvm.ts';

export interface Chosen {
  readonly host: KvmHost;
  readonly image: KvmImage;
  readonly machineType: KvmMachineType;
}

/**
 * What is not named is chosen only where there is no choice: a second `create` for the same Proxy
 * must never come to another host than the first, whatever was added in between. `problem` is for a
 * person; only an edit of the Proxy or of the configuration solves it.
 */
export function choose(placement: Placement, block: KvmBlock): Chosen | { problem: string } {
  const host = pick('zone', 'hosts', placement.zone, block.hosts);
  if (typeof host === 'string') return { problem: host };
  const image = pick('image', 'images', placement.image, block.images);
  if (typeof image === 'string') return { problem: image };
  const type = pick('machineType', 'machineTypes', placement.machineType, block.machineTypes);
  if (typeof type === 'string') return { problem: type };
  return { host, image, machineType: type };
}

function pick<Item extends { readonly name: string }>(
  field: string,
  list: string,
  wanted: string | undefined,
  items: readonly Item[],
): Item | string {
  const known = items.map(({ name }) => name).join(', ');
  if (wanted === undefined) {
    const [only, ...others] = items;
    if (only !== undefined && others.length === 0) return only;
    return `placement.${field} is needed: ${list} of this provider has ${known}`;
  }
  const found = items.find(({ name }) => name === wanted);
  return (
    found ?? `placement.${field} "${wanted}" is not in ${list} of this provider (known: ${known})`
  );
}
