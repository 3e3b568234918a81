/** The image of the mini guest, built once on a machine and kept in its folder for temporary files. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const FOLDER = join(import.meta.dirname, 'mini');
const PROGRAMS = ['/usr/bin/apt-get', '/usr/bin/objcopy', '/usr/bin/qemu-img', '/usr/bin/zstd'];
const SQUID = '/usr/sbin/squid';

export interface GuestImage {
  readonly path: string;
  readonly sha256: string;
}

/** Why it cannot be built here; undefined when it can. */
export function cannotBuildGuest(): string | undefined {
  const missing = [...PROGRAMS, SQUID].filter((program) => !existsSync(program));
  return missing.length === 0 ? undefined : `not installed: ${missing.join(', ')}`;
}

/** About 10 s the first time, and with another Squid or other scripts. */
export async function miniImage(): Promise<GuestImage> {
  const folder = join(tmpdir(), `egress-guest-mini-${digestOfSources()}`);
  const path = join(folder, 'mini.qcow2');
  if (!existsSync(path)) await build(folder);
  return { path, sha256: createHash('sha256').update(readFileSync(path)).digest('hex') };
}

/** Several test files may build at once: whoever is first wins, and nobody sees half of it. */
async function build(folder: string): Promise<void> {
  const work = mkdtempSync(`${folder}.`);
  try {
    await run(join(FOLDER, 'build.sh'), [work]);
    renameSync(work, folder);
  } catch (error) {
    rmSync(work, { recursive: true, force: true });
    if (!existsSync(join(folder, 'mini.qcow2'))) throw error;
  }
}

function digestOfSources(): string {
  const hash = createHash('sha256');
  for (const file of ['build.sh', 'init', 'udhcpc.sh']) {
    hash.update(readFileSync(join(FOLDER, file)));
  }
  return hash.update(readFileSync(SQUID)).digest('hex').slice(0, 16);
}
