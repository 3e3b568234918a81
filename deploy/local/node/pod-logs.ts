/** Where the output of containers goes, and which of it is kept. */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Files kept when a node starts; the oldest beyond that go. */
const LOG_FILES_MAX = 200;
/** Parts of a file name; none of them holds an underscore. */
const SEPARATOR = '_';

/** Log of one container. */
export function containerLogFile(
  folder: string,
  pod: { readonly namespace: string; readonly name: string },
  container: string,
): string {
  return join(folder, `${[pod.namespace, pod.name, container].join(SEPARATOR)}.log`);
}

/** Log of the pod's only container, or of its first; undefined while there is none. */
export function podLogFile(folder: string, namespace: string, name: string): string | undefined {
  const prefix = [namespace, name, ''].join(SEPARATOR);
  const file = readdirSync(folder)
    .sort()
    .find((one) => one.startsWith(prefix) && one.endsWith('.log'));
  return file === undefined ? undefined : join(folder, file);
}

/** Removes the logs that were written to longest ago. */
export function pruneLogs(folder: string): void {
  const files = readdirSync(folder).map((name) => join(folder, name));
  const writtenMs = new Map(files.map((file) => [file, statSync(file).mtimeMs]));
  files.sort((a, b) => (writtenMs.get(b) ?? 0) - (writtenMs.get(a) ?? 0));
  for (const file of files.slice(LOG_FILES_MAX)) rmSync(file, { force: true });
}
