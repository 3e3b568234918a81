/** Where the output of containers goes, and which of it is kept. */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Files kept of pods that are gone; the oldest beyond that go. */
export const LOG_FILES_MAX = 200;
/** Parts of a file name; none of them holds an underscore. */
const SEPARATOR = '_';

interface PodName {
  readonly namespace: string;
  readonly name: string;
}

/** Log of one container. */
export function containerLogFile(folder: string, pod: PodName, container: string): string {
  return join(folder, `${logPrefix(pod)}${container}.log`);
}

/** Log of the pod's only container, or of its first; undefined while there is none. */
export function podLogFile(folder: string, namespace: string, name: string): string | undefined {
  const prefix = logPrefix({ namespace, name });
  const file = readdirSync(folder)
    .sort()
    .find((one) => one.startsWith(prefix) && one.endsWith('.log'));
  return file === undefined ? undefined : join(folder, file);
}

/** Removes the logs that were written to longest ago; those of `present` pods stay. */
export function pruneLogs(folder: string, present: Iterable<PodName> = []): void {
  const kept = new Set([...present].map(logPrefix));
  const files = readdirSync(folder)
    .filter((name) => !kept.has(name.slice(0, name.lastIndexOf(SEPARATOR) + 1)))
    .map((name) => join(folder, name));
  const writtenMs = new Map(files.map((file) => [file, statSync(file).mtimeMs]));
  files.sort((a, b) => (writtenMs.get(b) ?? 0) - (writtenMs.get(a) ?? 0));
  for (const file of files.slice(LOG_FILES_MAX)) rmSync(file, { force: true });
}

function logPrefix({ namespace, name }: PodName): string {
  return [namespace, name, ''].join(SEPARATOR);
}
