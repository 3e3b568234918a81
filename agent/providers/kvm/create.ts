/**
 * Making a machine, as far as `create` goes: the domain is defined first, with its whole mark, and
 * before anything that it needs exists. So whatever a crash leaves is found by the mark, and an id
 * can be given back long before the machine runs; `preparation.ts` does the rest.
 */
import type { KvmHost } from '../config-kvm.ts';
import { isSameMark } from '../mark.ts';
import type { CreateRequest, Mark } from '../provider.ts';
import { assertRoom } from './capacity.ts';
import { UnusableError } from './classify.ts';
import { formatDomain, type VolumeRef } from './domain-xml.ts';
import { AFFECT, type Domain, isLibvirtError, type Pool, type Volume } from './libvirt/client.ts';
import type { Libvirt } from './libvirt-port.ts';
import { type Found, findDomain, findRemains, readDomains, unlessAbsent } from './lookup.ts';
import {
  bareMetadataElement,
  type MachineMetadata,
  METADATA_PREFIX,
  METADATA_URI,
  type Phase,
} from './metadata.ts';
import type { Chosen } from './placement.ts';
import { activePool, freshInfo } from './pool.ts';
import { buildSeed } from './seed.ts';
import { generationOf, type MachineVolume, machineVolumeName } from './volume-names.ts';
import { formatRawVolume } from './volume-xml.ts';

export interface CreateContext {
  readonly libvirt: Libvirt;
  readonly chosen: Chosen;
  readonly signal: AbortSignal;
  /** Of a new machine. */
  readonly newUuid: () => string;
  readonly nowMs: () => number;
}

/**
 * The machine of the request, its seed complete. Throws for one that is somebody else's, or that is
 * being deleted.
 */
export async function ensureMachine(
  context: CreateContext,
  request: CreateRequest,
): Promise<Found & { readonly machine: MachineMetadata }> {
  const found = (await findOwn(context, request)) ?? (await define(context, request));
  const { machine } = found.definition;
  if (machine === undefined) throw new Error('the domain was defined without its metadata');
  if (machine.phase === 'deleting') throw new Error(`${found.domain.name} is still being deleted`);
  if (machine.phase === 'seeding' || machine.phase === 'preparing') {
    const seed = await writeSeed(context, found, request);
    await keepUnlessDeleted(context.libvirt, found.domain, seed, context.signal);
  }
  if (machine.phase !== 'seeding') return { ...found, machine };
  await setPhase(context.libvirt, found, 'preparing', context.signal);
  return { ...found, machine: { ...machine, phase: 'preparing' } };
}

/** The machine under the name, or the one that was given another name by hand. */
async function findOwn(
  { libvirt, chosen: { host }, signal }: CreateContext,
  request: CreateRequest,
): Promise<Found | undefined> {
  const { name } = request;
  const found = await findDomain(libvirt, name, signal);
  if (found !== undefined) {
    if (isMadeFor(request, found)) return found;
    throw new UnusableError(
      `domain ${name} on host ${host.name} exists and belongs to somebody else`,
    );
  }
  // A machine that was renamed keeps its volumes; without any, there is none.
  const pool = await activePool(libvirt, host, signal);
  const volumes = await libvirt.listVolumes(pool, signal);
  if (!volumes.some((volume) => volume.name.startsWith(`${name}.`))) return undefined;
  const { found: all } = await readDomains(libvirt, signal);
  const renamed = all.find((each) => isMadeFor(request, each));
  if (renamed === undefined) await removeRemains(libvirt, host, request, signal);
  return renamed;
}

/** What an earlier machine of this Proxy left: the new one must not meet it. */
async function removeRemains(
  libvirt: Libvirt,
  host: KvmHost,
  { name, ...mark }: CreateRequest,
  signal: AbortSignal,
): Promise<void> {
  const remains = await findRemains(libvirt, host, name, signal);
  for (const volume of remains?.volumes ?? []) {
    if (isSameMark(remains?.owner, mark)) await unlessAbsent(libvirt.deleteVolume(volume, signal));
  }
}

async function define(context: CreateContext, request: CreateRequest): Promise<Found> {
  const { libvirt, chosen, signal } = context;
  const { host, image, machineType } = chosen;
  const pool = await activePool(libvirt, host, signal);
  const info = await freshInfo(libvirt, pool, signal);
  assertRoom(host.name, { name: host.pool, info }, await libvirt.hostMemory(signal), machineType);
  const network = await libvirt.networkByName(host.network, signal);
  if (!(await libvirt.isNetworkActive(network, signal))) {
    throw new Error(`network ${host.network} of host ${host.name} is not active`);
  }
  const { name, uid, installation, namespace, proxyName } = request;
  const uuid = context.newUuid();
  const owner = { machine: name, uid, installation, generation: generationOf(uuid) };
  const xml = formatDomain({
    name,
    uuid,
    metadata: {
      mark: { uid, installation },
      proxy: { namespace, name: proxyName },
      createdAtMs: context.nowMs(),
      plan: { image: image.name, diskGiB: machineType.diskGiB },
      phase: 'seeding',
    },
    virtType: host.virtType,
    firmware: image.firmware,
    cpus: machineType.cpus,
    memoryMiB: machineType.memoryMiB,
    disk: volumeOf(host, owner, 'disk'),
    seed: volumeOf(host, owner, 'seed'),
    network: host.network,
  });
  try {
    await libvirt.defineDomain(xml, signal);
  } catch (error) {
    // Somebody else was faster: then it is found now, and judged by its mark.
    if (!isLibvirtError(error, 'operationFailed', 'domainExists')) throw error;
    const found = await findOwn(context, request);
    if (found === undefined) throw error;
    return found;
  }
  const found = await findDomain(libvirt, name, signal);
  if (found === undefined) throw new Error(`domain ${name} vanished as soon as it was defined`);
  return found;
}

/**
 * Written anew at each attempt, as nobody can tell a seed that was cut off. The same machine has
 * the same bytes, so that two who write at once do no harm.
 */
async function writeSeed(
  { libvirt, chosen: { host }, signal }: CreateContext,
  { domain, definition }: Found,
  request: CreateRequest,
): Promise<Volume> {
  const { uuid, name } = domain;
  const content = buildSeed({ uuid, hostname: name, userData: request.cloudInit });
  const volumeName = ownVolume(definition, 'iso');
  if (volumeName === undefined) throw new Error(`domain ${name} has no seed among its disks`);
  const pool = await activePool(libvirt, host, signal);
  const volume = await seedVolume(libvirt, pool, volumeName, content.length, signal);
  await libvirt.upload(volume, [content], { length: content.length }, signal);
  return volume;
}

/**
 * After a volume was made for a machine: throws, and takes the volume away again, when somebody
 * deleted the machine meanwhile, who could not see the volume yet.
 */
export async function keepUnlessDeleted(
  libvirt: Libvirt,
  { name, uuid }: Pick<Domain, 'name' | 'uuid'>,
  volume: Volume,
  signal: AbortSignal,
): Promise<void> {
  const found = await findDomain(libvirt, name, signal);
  const isWanted = found?.domain.uuid === uuid && found.definition.machine?.phase !== 'deleting';
  if (isWanted) return;
  await unlessAbsent(libvirt.deleteVolume(volume, signal));
  throw new Error(`${name} was deleted while it was made`);
}

async function seedVolume(
  libvirt: Libvirt,
  pool: Pool,
  name: string,
  bytes: number,
  signal: AbortSignal,
): Promise<Volume> {
  const existing = await unlessAbsent(libvirt.volumeByName(pool, name, signal));
  if (existing !== undefined) {
    const { capacity } = await libvirt.volumeInfo(existing, signal);
    if (capacity === bytes) return existing;
    await unlessAbsent(libvirt.deleteVolume(existing, signal));
  }
  try {
    return await libvirt.createVolume(pool, formatRawVolume(name, bytes), signal);
  } catch (error) {
    if (!isLibvirtError(error, 'storageVolumeExists')) throw error;
    return libvirt.volumeByName(pool, name, signal);
  }
}

/** Name of the volume with this ending among the disks of a domain. */
export function ownVolume(
  { volumes }: Found['definition'],
  ending: 'iso' | 'qcow2',
): string | undefined {
  return volumes.find(({ volume }) => volume.endsWith(`.${ending}`))?.volume;
}

/** Throws when the machine is none of ours: there is nothing to write to. */
export async function setPhase(
  libvirt: Libvirt,
  found: Found,
  phase: Phase,
  signal: AbortSignal,
): Promise<void> {
  const { machine } = found.definition;
  if (machine === undefined) throw new Error(`domain ${found.domain.name} has no metadata of ours`);
  await writeMetadata(libvirt, found, { ...machine, phase }, AFFECT.config, signal);
}

/** `affect` of `AFFECT`. */
export function writeMetadata(
  libvirt: Libvirt,
  { domain }: Found,
  machine: MachineMetadata,
  affect: number,
  signal: AbortSignal,
): Promise<void> {
  const element = { uri: METADATA_URI, prefix: METADATA_PREFIX, xml: bareMetadataElement(machine) };
  return libvirt.setDomainMetadata(domain, element, affect, signal);
}

function volumeOf(host: KvmHost, owner: MachineVolume, kind: 'disk' | 'seed'): VolumeRef {
  return { pool: host.pool, volume: machineVolumeName(owner, kind) };
}

function isMadeFor(mark: Mark, { definition }: Found): boolean {
  return isSameMark(definition.machine?.mark, mark);
}
