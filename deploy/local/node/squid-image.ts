/**
 * The image `ubuntu/squid` (and those that behave like it), played by the machine's own Squid. As
 * root the process is started as the image's unprivileged user at once: a Squid that drops
 * its privileges by itself could no longer open `/dev/stdout`.
 */
import { createHash } from 'node:crypto';
import { chownSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';
import { isProgram } from '../process/program.ts';
import { type ContainerPlace, ContainerStartError, type ImageAdapter } from './image.ts';
import { mapPaths, pinSquidConfig } from './squid-config.ts';
import type { Owner } from './volumes.ts';

/** `ubuntu/squid`, with or without a registry, a tag or a digest. */
const IMAGE_PATTERN = /^(?:[^/]+\/)?ubuntu\/squid(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/;

/** Entry point and arguments of the image, when the container names neither. */
const IMAGE_COMMAND = ['entrypoint.sh'];
const IMAGE_ARGS = ['-f', '/etc/squid/squid.conf', '-NYC'];
const SQUID_PROGRAMS = new Set(['squid', 'entrypoint.sh']);

/** Accounts that distributions run Squid as; the last exists everywhere. */
const SQUID_USERS = ['proxy', 'squid', 'nobody'];
/** Where Linux keeps POSIX shared memory. */
const SHARED_MEMORY = '/dev/shm';
const USUAL_FOLDERS = ['/usr/sbin', '/usr/local/sbin', '/usr/bin', '/usr/local/bin'];

/** Whether an image is one that this adapter plays. */
export function isSquidImage(image: string): boolean {
  return IMAGE_PATTERN.test(image);
}

/** Path of the machine's Squid; undefined when there is none. `given` is used as it is. */
export function findSquid(path: string, given?: string): string | undefined {
  if (given !== undefined) return isProgram(given) ? given : undefined;
  const folders = [...USUAL_FOLDERS, ...path.split(delimiter)].filter((folder) => folder !== '');
  return folders.map((folder) => join(folder, 'squid')).find(isProgram);
}

/** Makes the adapter around the Squid at `program`. */
export function createSquidImage(program: string): ImageAdapter {
  return {
    prepare(place) {
      const service = serviceName(place);
      return {
        command: program,
        args: ['-n', service, ...prepareArgs(place)],
        cleanUp: () => removeSharedMemory(service),
      };
    },
    defaultOwner: squidOwner,
  };
}

/**
 * Squid names its shared memory by its service. The default is one name for the whole machine, by
 * which a Squid takes away that of another, or cannot start when it belongs to another user.
 */
function serviceName({ pod, container }: ContainerPlace): string {
  const hash = createHash('sha256').update(`${pod.metadata.uid}/${container.name}`);
  return `egress${hash.digest('hex').slice(0, 16)}`;
}

/** A Squid that was killed leaves it behind. */
function removeSharedMemory(service: string): void {
  const left = existsSync(SHARED_MEMORY) ? readdirSync(SHARED_MEMORY) : [];
  for (const name of left.filter((one) => one.startsWith(`${service}-`))) {
    rmSync(join(SHARED_MEMORY, name), { force: true });
  }
}

function prepareArgs(place: ContainerPlace): string[] {
  const { command, args } = place.container;
  const [entry = '', ...given] = command.length > 0 ? command : IMAGE_COMMAND;
  if (!SQUID_PROGRAMS.has(basename(entry))) {
    throw new ContainerStartError(
      `exec: "${entry}": the local node's stand-in for this image has only squid`,
    );
  }
  const defaults = command.length > 0 ? [] : IMAGE_ARGS;
  const all = [...given, ...(args.length > 0 ? args : defaults)];
  return all.some((arg) => arg === '-f') ? withPinnedConfig(all, place) : all;
}

/** Puts the pinned copy in the place of the file behind `-f`. */
function withPinnedConfig(args: readonly string[], place: ContainerPlace): string[] {
  const at = args.indexOf('-f') + 1;
  const given = args[at];
  if (given === undefined) throw new ContainerStartError('squid: -f needs a file');
  const source = mapPaths(given, place.mounts);
  let text: string;
  try {
    text = readFileSync(source, 'utf8');
  } catch {
    throw new ContainerStartError(`squid: configuration ${given} cannot be read`);
  }
  const file = join(place.folder, 'squid.conf');
  const hostname = place.pod.metadata.name;
  writeFileSync(file, pinSquidConfig(text, { ip: place.ip, hostname, mounts: place.mounts }), {
    mode: 0o440,
  });
  if (place.owner !== undefined) chownSync(file, place.owner.uid, place.owner.gid);
  return args.map((arg, index) => (index === at ? file : arg));
}

function squidOwner(): Owner {
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of SQUID_USERS) {
    const fields = accounts.find((line) => line.startsWith(`${name}:`))?.split(':');
    const [uid, gid] = [Number(fields?.[2]), Number(fields?.[3])];
    if (uid > 0 && gid >= 0) return { uid, gid };
  }
  throw new ContainerStartError(`no account of ${SQUID_USERS.join(', ')} to run squid as`);
}
