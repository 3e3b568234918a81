/** The disk of a machine: what differs from its image. */
import type { KvmHost } from '../config-kvm.ts';
import { gib } from './capacity.ts';
import { UnusableError } from './classify.ts';
import { isLibvirtError, type Pool, type Volume } from './libvirt/client.ts';
import type { Libvirt } from './libvirt-port.ts';
import { unlessAbsent } from './lookup.ts';
import { activePool } from './pool.ts';
import { formatOverlayVolume, parseVolume } from './volume-xml.ts';

const GIB = 1024 ** 3;

/**
 * Makes the disk of `diskGiB` over the image. One that is there already was made by an attempt before
 * this one: it is taken when image and size are the right ones, and made anew otherwise. The
 * machine must never have run.
 */
export async function ensureOverlay(
  libvirt: Libvirt,
  host: KvmHost,
  name: string,
  of: { readonly image: Volume; readonly diskGiB: number },
  signal: AbortSignal,
): Promise<Volume> {
  const pool = await activePool(libvirt, host, signal);
  const bytes = of.diskGiB * GIB;
  const image = await libvirt.volumeInfo(of.image, signal);
  if (image.capacity > bytes) {
    throw new UnusableError(
      `the image needs a disk of ${gib(image.capacity)}; the machine type has ${gib(bytes)}`,
    );
  }
  const backingPath = await libvirt.volumePath(of.image, signal);
  const wanted = { bytes, backingPath };
  const existing = await unlessAbsent(libvirt.volumeByName(pool, name, signal));
  if (existing !== undefined) {
    if (await isAsWanted(libvirt, existing, wanted, signal)) return existing;
    await unlessAbsent(libvirt.deleteVolume(existing, signal));
  }
  return create(libvirt, pool, name, wanted, signal);
}

interface Wanted {
  readonly bytes: number;
  readonly backingPath: string;
}

async function isAsWanted(
  libvirt: Libvirt,
  volume: Volume,
  { bytes, backingPath }: Wanted,
  signal: AbortSignal,
): Promise<boolean> {
  const text = await unlessAbsent(libvirt.volumeXml(volume, signal));
  const found = text === undefined ? undefined : parseVolume(text);
  return (
    found?.format === 'qcow2' && found.capacityBytes === bytes && found.backingPath === backingPath
  );
}

async function create(
  libvirt: Libvirt,
  pool: Pool,
  name: string,
  { bytes, backingPath }: Wanted,
  signal: AbortSignal,
): Promise<Volume> {
  try {
    return await libvirt.createVolume(pool, formatOverlayVolume(name, bytes, backingPath), signal);
  } catch (error) {
    // Another process makes the same disk: it is looked at when this is tried again.
    if (!isLibvirtError(error, 'storageVolumeExists')) throw error;
    throw new Error(`disk ${name} is being made by another process`, { cause: error });
  }
}
