/**
 * The output of a process in a file of bounded size. Processes hold the file open for appending,
 * so it is copied and cut rather than renamed; a line written in that moment may be lost.
 */
import {
  closeSync,
  copyFileSync,
  fchownSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
} from 'node:fs';
import type { Clock } from '#shared/clock.ts';

export const LOG_BYTES_MAX = 10 * 1024 * 1024;
const TAIL_BYTES_MAX = 16 * 1024;
const CHECK_MS = 30_000;

export interface LogFile {
  readonly path: string;
  /** To hand to a process. */
  readonly fd: number;
  /** Keeps the present content as `<path>.1` and starts over, when it has grown too large. */
  rotateIfLarge(bytesMax?: number): void;
  /** The last lines, without empty ones. */
  tail(lines: number): string[];
  close(): void;
}

/** Opens for appending; `owner` is the user whose process writes there, when it is not ours. */
export function openLogFile(path: string, owner?: { uid: number; gid: number }): LogFile {
  const fd = openSync(path, 'a+', 0o640);
  if (owner !== undefined) fchownSync(fd, owner.uid, owner.gid);
  let open = true;
  return {
    path,
    fd,
    rotateIfLarge(bytesMax = LOG_BYTES_MAX) {
      if (!open || fstatSync(fd).size < bytesMax) return;
      copyFileSync(path, `${path}.1`);
      ftruncateSync(fd, 0);
    },
    tail(lines) {
      if (!open) return [];
      const size = fstatSync(fd).size;
      const length = Math.min(size, TAIL_BYTES_MAX);
      const buffer = Buffer.alloc(length);
      readSync(fd, buffer, 0, length, size - length);
      const all = buffer.toString('utf8').split('\n');
      return all.filter((line) => line.trim() !== '').slice(-lines);
    },
    close() {
      if (open) closeSync(fd);
      open = false;
    },
  };
}

/** Keeps a log within its size until `signal` aborts. */
export async function boundLog(clock: Clock, log: LogFile, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(CHECK_MS, signal).catch(() => {});
    if (!signal.aborted) log.rotateIfLarge();
  }
}
