/**
 * The kubectls that the tests run: the one on this machine's path and, where apt has it, the one
 * that Debian packages, unpacked beside the other caches. A missing one comes with its reason.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export interface KubectlProgram {
  /** For the title of a suite: where it comes from and its version, or why it is not here. */
  readonly title: string;
  readonly path: string | undefined;
}

const CACHE = new URL('../../../../../node_modules/.cache/', import.meta.url).pathname;
const DEBIAN_PACKAGE = 'kubernetes-client';
const DEBIAN_KUBECTL = join(CACHE, 'debian-kubectl');
const DOWNLOAD_TIMEOUT_MS = 60_000;
const VERSION_TIMEOUT_MS = 10_000;

/** Both programs, found (or fetched) once for each test file. */
export function kubectlPrograms(): readonly KubectlProgram[] {
  const machine = program('kubectl of the path', () => versionOf('kubectl'), 'kubectl');
  const debian = program(
    "Debian's kubectl",
    debianVersion,
    join(DEBIAN_KUBECTL, 'usr/bin/kubectl'),
  );
  return [machine, debian];
}

function program(source: string, version: () => string, path: string): KubectlProgram {
  try {
    return { title: `${source}, ${version()}`, path };
  } catch (error) {
    return { title: `${source} (not here: ${reasonOf(error)})`, path: undefined };
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.message.trim().split('\n').at(-1) ?? '';
}

function versionOf(path: string): string {
  const text = run(path, ['version', '--client', '-o', 'json'], VERSION_TIMEOUT_MS);
  const [, version] = /"gitVersion": "([^"]+)"/.exec(text) ?? [];
  if (version === undefined) throw new Error(`${path} does not tell its version`);
  return version;
}

function debianVersion(): string {
  const path = join(DEBIAN_KUBECTL, 'usr/bin/kubectl');
  if (!existsSync(path)) unpackDebianPackage();
  return versionOf(path);
}

/** Another test file may do the same at this moment: the folder appears whole or not at all. */
function unpackDebianPackage(): void {
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'unpacking-'));
  try {
    run('apt-get', ['-q', 'download', DEBIAN_PACKAGE], DOWNLOAD_TIMEOUT_MS, work);
    const archive = readdirSync(work).find((name) => name.endsWith('.deb'));
    if (archive === undefined) throw new Error(`apt-get brought no ${DEBIAN_PACKAGE}`);
    run('dpkg', ['-x', archive, 'unpacked'], DOWNLOAD_TIMEOUT_MS, work);
    if (!existsSync(DEBIAN_KUBECTL)) renameSync(join(work, 'unpacked'), DEBIAN_KUBECTL);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function run(command: string, args: readonly string[], timeout: number, cwd?: string): string {
  return execFileSync(command, args, {
    encoding: 'utf8',
    timeout,
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  });
}
