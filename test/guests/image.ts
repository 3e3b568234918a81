/** Images of guests, each built once on a machine and kept in its folder for temporary files. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  createReadStream,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** The guest is made of the first; the others make it. */
const PROGRAMS = [
  '/usr/sbin/squid',
  '/usr/bin/apt-get',
  '/usr/bin/objcopy',
  '/usr/bin/qemu-img',
  '/usr/bin/zstd',
];

/**
 * - `mini`: a kernel, busybox and this machine's Squid, 26 MB; boots in about 10 s under emulation.
 * - `debian`: Debian with cloud-init, 170 MB; half a minute.
 */
export type GuestName = 'mini' | 'debian';

export interface GuestImage {
  readonly path: string;
  readonly sha256: string;
}

/** Why images cannot be built here; undefined when they can. */
export function cannotBuildGuest(): string | undefined {
  const missing = PROGRAMS.filter((program) => !existsSync(program));
  return missing.length === 0 ? undefined : `not installed: ${missing.join(', ')}`;
}

/** Builds it when there is none of these scripts and this Squid: 10 s, or 4 minutes. */
export async function guestImage(guest: GuestName): Promise<GuestImage> {
  const folder = join(tmpdir(), `egress-guest-${guest}-${digestOfSources(guest)}`);
  const path = join(folder, `${guest}.qcow2`);
  if (!existsSync(path)) await build(guest, folder);
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return { path, sha256: hash.digest('hex') };
}

/** Several test files may build at once: whoever is first wins, and nobody sees half of it. */
async function build(guest: GuestName, folder: string): Promise<void> {
  const work = mkdtempSync(`${folder}.`);
  try {
    const script = join(import.meta.dirname, guest, 'build.sh');
    await run(script, [work], { maxBuffer: OUTPUT_BYTES_MAX });
    rmSync(join(work, 'packages'), { recursive: true });
    renameSync(work, folder);
  } catch (error) {
    rmSync(work, { recursive: true, force: true });
    if (!existsSync(join(folder, `${guest}.qcow2`))) throw error;
  }
}

function digestOfSources(guest: GuestName): string {
  const folder = join(import.meta.dirname, guest);
  const sources = readdirSync(folder)
    .sort()
    .map((name) => join(folder, name));
  const hash = createHash('sha256');
  for (const path of [...sources, join(import.meta.dirname, 'lib.sh'), ...PROGRAMS.slice(0, 1)]) {
    hash.update(readFileSync(path));
  }
  return hash.digest('hex').slice(0, 16);
}
