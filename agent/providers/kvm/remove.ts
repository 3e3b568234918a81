/** Taking a machine away, with all that was made for it; or letting it go. */
import type { Clock } from '#shared/clock.ts';
import type { KvmHost } from '../config-kvm.ts';
import { isSameMark } from '../mark.ts';
import type { Mark } from '../provider.ts';
import { UnusableError } from './classify.ts';
import { setPhase, writeMetadata } from './create.ts';
import { AFFECT, isLibvirtError, UNDEFINE, type Volume } from './libvirt/client.ts';
import type { Libvirt } from './libvirt-port.ts';
import { type Found, findDomain, findRemains, unlessAbsent } from './lookup.ts';
import type { MachineMetadata } from './metadata.ts';
import { listPool } from './pool.ts';
import { generationOf, parseMachineVolume } from './volume-names.ts';

/** With these it goes whatever it has: NVRAM, a saved state, snapshots. */
const WITH_ALL = UNDEFINE.managedSave | UNDEFINE.snapshots | UNDEFINE.nvram;

/** How often, and after how long, a volume is tried again that is being made at the moment. */
const TRIES_MAX = 25;
const TRY_AGAIN_MS = 200;

export interface RemoveContext {
  readonly libvirt: Libvirt;
  readonly host: KvmHost;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/**
 * The domain goes last: as long as there is something to remove, it is found by its mark. Each step
 * may have been done before. The machine is the one that is found now, by its UUID; one that is
 * made under the name meanwhile is not touched.
 */
export async function removeMachine(context: RemoveContext, name: string): Promise<void> {
  const { libvirt, host, signal } = context;
  const found = await findDomain(libvirt, name, signal);
  if (found === undefined) {
    const remains = await findRemains(libvirt, host, name, signal);
    await deleteVolumes(context, remains?.volumes ?? []);
    return;
  }
  const mark = found.definition.machine?.mark;
  if (mark === undefined) {
    throw new UnusableError(`domain ${name} on host ${host.name} is not one of ours`);
  }
  // From here on nobody starts it any more, whatever becomes of this call.
  await unlessAbsent(setPhase(libvirt, found, 'deleting', signal));
  await stop(libvirt, found, signal);
  await deleteOwnVolumes(context, { ...found, mark });
  await unlessAbsent(libvirt.undefineDomain(found.domain, WITH_ALL, signal));
  // What another process was about to make for it a moment ago.
  const generation = generationOf(found.domain.uuid);
  await deleteOwnVolumes(context, { ...found, mark, generation });
}

/** Disks and seeds of a machine; those of this `generation` alone, if it is given. */
async function deleteOwnVolumes(
  context: RemoveContext,
  of: Found & { readonly mark: Mark; readonly generation?: string },
): Promise<void> {
  const { libvirt, host, signal } = context;
  const { domain, mark, generation } = of;
  const own = (await listPool(libvirt, host, signal)).filter((volume) => {
    const owner = parseMachineVolume(volume.name);
    if (owner === undefined || !isSameMark(owner, mark)) return false;
    if (generation !== undefined && owner.generation !== generation) return false;
    // By name and mark; of a domain that was renamed, those that it uses.
    return owner.machine === domain.name || isUsed(of, volume);
  });
  await deleteVolumes(context, own);
}

function isUsed({ definition }: Found, volume: Volume): boolean {
  return definition.volumes.some((used) => used.volume === volume.name);
}

async function stop(libvirt: Libvirt, { domain }: Found, signal: AbortSignal): Promise<void> {
  try {
    await unlessAbsent(libvirt.destroyDomain(domain, signal));
  } catch (error) {
    // It does not run.
    if (!isLibvirtError(error, 'operationInvalid')) throw error;
  }
}

async function deleteVolumes(
  { libvirt, clock, signal }: RemoveContext,
  volumes: readonly Volume[],
): Promise<void> {
  for (const volume of volumes) {
    for (let tries = 1; ; tries++) {
      try {
        await unlessAbsent(libvirt.deleteVolume(volume, signal));
        break;
      } catch (error) {
        // Another process has libvirt make it just now, which takes a moment.
        if (!isLibvirtError(error, 'operationInvalid') || tries === TRIES_MAX) throw error;
        await clock.sleep(TRY_AGAIN_MS, signal);
      }
    }
  }
}

/**
 * Takes the mark out of the definition that is stored and out of the one in use. Its time of
 * creation and the way that it has come stay: they are nobody's claim. Gives the machine, if there is
 * one.
 */
export async function disownMachine(
  libvirt: Libvirt,
  name: string,
  signal: AbortSignal,
): Promise<Found | undefined> {
  const found = await findDomain(libvirt, name, signal);
  const machine = found?.definition.machine;
  if (found !== undefined && machine?.mark !== undefined) {
    const { mark: _, ...unmarked } = machine;
    await unlessAbsent(writeBoth(libvirt, found, unmarked, signal));
  }
  return found;
}

async function writeBoth(
  libvirt: Libvirt,
  found: Found,
  machine: MachineMetadata,
  signal: AbortSignal,
): Promise<void> {
  await writeMetadata(libvirt, found, machine, AFFECT.config, signal);
  try {
    await writeMetadata(libvirt, found, machine, AFFECT.live, signal);
  } catch (error) {
    // It does not run, so there is no other definition.
    if (!isLibvirtError(error, 'operationInvalid')) throw error;
  }
}
