/** Whether a host has room for a machine. Pure. */
import type { KvmMachineType } from '../config-kvm.ts';
import type { HostMemory, PoolInfo } from './libvirt/client.ts';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
/** QEMU itself, beside the memory of the guest. */
const OVERHEAD_BYTES = 128 * MIB;

/** The host has no room; `message` has the numbers. Nothing was made. */
export class CapacityError extends Error {
  override readonly name = 'CapacityError';
}

/**
 * Throws a `CapacityError` when the pool could not hold the whole disk, or the host the memory.
 * Disks grow as they are written, so that a pool can still fill up by what was made before.
 */
export function assertRoom(
  host: string,
  pool: { readonly name: string; readonly info: PoolInfo },
  memory: HostMemory,
  { name, diskGiB, memoryMiB }: Omit<KvmMachineType, 'cpus'>,
): void {
  assertDiskRoom(host, pool, diskGiB * GIB, `machine type ${name}`);
  assertMemoryRoom(host, memory, memoryMiB * MIB, `machine type ${name}`);
}

/** `what` needs `bytes` of the pool. */
export function assertDiskRoom(
  host: string,
  { name, info }: { readonly name: string; readonly info: PoolInfo },
  bytes: number,
  what: string,
): void {
  if (info.available >= bytes) return;
  throw new CapacityError(
    `pool ${name} of host ${host} has ${gib(info.available)} of ${gib(info.capacity)} free; ` +
      `${what} needs ${gib(bytes)}`,
  );
}

export function assertMemoryRoom(
  host: string,
  memory: HostMemory,
  guestBytes: number,
  what: string,
): void {
  const needed = guestBytes + OVERHEAD_BYTES;
  if (memory.available >= needed) return;
  throw new CapacityError(
    `host ${host} has ${mib(memory.available)} of ${mib(memory.total)} memory available; ` +
      `${what} needs ${mib(guestBytes)}, and ${mib(OVERHEAD_BYTES)} for QEMU`,
  );
}

export function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`;
}

function mib(bytes: number): string {
  return `${Math.round(bytes / MIB)} MiB`;
}
