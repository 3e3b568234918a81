/** The storage pool of a host. */
import type { KvmHost } from '../config-kvm.ts';
import {
  LibvirtError,
  POOL_STATE,
  type Pool,
  type PoolInfo,
  type Volume,
} from './libvirt/client.ts';
import type { Libvirt } from './libvirt-port.ts';

/** The pool; throws when it is stopped. */
export async function activePool(
  libvirt: Libvirt,
  host: KvmHost,
  signal: AbortSignal,
): Promise<Pool> {
  const pool = await libvirt.poolByName(host.pool, signal);
  const { state } = await libvirt.poolInfo(pool, signal);
  if (state === POOL_STATE.running || state === POOL_STATE.degraded) return pool;
  throw new Error(`pool ${host.pool} of host ${host.name} is not running`);
}

/**
 * Its sizes as they are now. libvirt itself counts what it was asked to make, and sees what disks
 * have grown to, and what others wrote, when it looks again. It cannot while a volume is written:
 * then it is told what is known.
 */
export async function freshInfo(
  libvirt: Libvirt,
  pool: Pool,
  signal: AbortSignal,
): Promise<PoolInfo> {
  try {
    await libvirt.refreshPool(pool, signal);
  } catch (error) {
    if (!(error instanceof LibvirtError)) throw error;
  }
  return libvirt.poolInfo(pool, signal);
}

/** All volumes of the host's pool. */
export async function listPool(
  libvirt: Libvirt,
  host: KvmHost,
  signal: AbortSignal,
): Promise<readonly Volume[]> {
  return libvirt.listVolumes(await libvirt.poolByName(host.pool, signal), signal);
}
