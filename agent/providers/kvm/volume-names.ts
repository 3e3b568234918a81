/**
 * Names of volumes. A volume has no metadata, so its name says what it is and whose: disks and
 * seeds carry the mark of their machine, images their checksum. Pure.
 */
import type { Mark } from '../provider.ts';

const MARK_PART = /^[A-Za-z0-9-]{1,64}$/;
const KINDS = { disk: 'qcow2', seed: 'iso' } as const;
const MACHINE = /^[A-Za-z0-9_][-\w]{0,62}$/;
const GENERATION = /^[0-9a-f]{8}$/;
const MACHINE_VOLUME = /^([^.]+)\.([^.]+)\.([^.]+)\.([^.]+)\.(?:qcow2|iso)$/;

/** Part of an image's checksum that tells its copies from those of another image. */
const CHECKSUM_DIGITS = 16;
const IMAGE_PREFIX = 'egress-image-';

export type MachineVolumeKind = keyof typeof KINDS;

export interface MachineVolume extends Mark {
  /** Name of the machine. */
  readonly machine: string;
  /**
   * Start of the domain's UUID: a machine has the name of the one that it replaces, and must never
   * come up on what was left of it.
   */
  readonly generation: string;
}

/** Whether name and mark can be written into the name of a volume, as those of Kubernetes can. */
export function isNameable(machine: string, { uid, installation }: Mark): boolean {
  return MACHINE.test(machine) && MARK_PART.test(uid) && MARK_PART.test(installation);
}

export function generationOf(uuid: string): string {
  return uuid.slice(0, 8).toLowerCase();
}

export function machineVolumeName(of: MachineVolume, kind: MachineVolumeKind): string {
  return `${of.machine}.${of.uid}.${of.installation}.${of.generation}.${KINDS[kind]}`;
}

/** Whose a disk or a seed is; undefined for any other volume. */
export function parseMachineVolume(volume: string): MachineVolume | undefined {
  const [, machine = '', uid = '', installation = '', generation = ''] =
    MACHINE_VOLUME.exec(volume) ?? [];
  if (!isNameable(machine, { uid, installation }) || !GENERATION.test(generation)) return undefined;
  return { machine, uid, installation, generation };
}

/**
 * A base image in a pool: each attempt to upload it writes a volume of its own, and a second, empty
 * volume is made when all of it is there and verified. libvirt cannot rename volumes, so this is
 * how an upload that was cut off is never taken for an image.
 */
export interface ImageCopy {
  /** Chosen at random for each attempt. */
  readonly attempt: string;
}

export const imageVolumes = {
  /** What all volumes of an image have in common; another checksum is another image. */
  prefix: (image: { readonly name: string; readonly sha256: string }) =>
    `${IMAGE_PREFIX}${image.name}-${image.sha256.slice(0, CHECKSUM_DIGITS)}.`,
  data: (prefix: string, { attempt }: ImageCopy) => `${prefix}${attempt}.img`,
  complete: (prefix: string, { attempt }: ImageCopy) => `${prefix}${attempt}.complete`,
};

/** The attempts whose volumes are among `names`, complete or not, in the order of their names. */
export function imageCopies(
  prefix: string,
  names: readonly string[],
): (ImageCopy & { readonly isComplete: boolean; readonly hasData: boolean })[] {
  const present = new Set(names);
  const attempts = new Set<string>();
  for (const name of names) {
    if (!name.startsWith(prefix)) continue;
    const [, attempt] = /^([0-9a-f]+)\.(?:img|complete)$/.exec(name.slice(prefix.length)) ?? [];
    if (attempt !== undefined) attempts.add(attempt);
  }
  return [...attempts].sort().map((attempt) => {
    const hasData = present.has(imageVolumes.data(prefix, { attempt }));
    const isComplete = hasData && present.has(imageVolumes.complete(prefix, { attempt }));
    return { attempt, hasData, isComplete };
  });
}
