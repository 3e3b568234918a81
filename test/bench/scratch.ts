/**
 * What a benchmark must not leave behind. Processes and folders go when it ends, and by listeners
 * of `exit` also when a signal or an error of its own ends it.
 */
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Processes that are being killed may still write into a folder. */
const REMOVALS_MAX = 40;
const REMOVAL_WAIT_MS = 50;
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;

/** One for each folder and each process. */
const LISTENERS_MAX = 100;

/** Lets signals end the process by `exit`, as it has listeners for that. */
export function exitOnSignals(): void {
  process.setMaxListeners(LISTENERS_MAX);
  for (const [signal, number] of Object.entries(SIGNALS)) {
    process.once(signal, () => process.exit(128 + number));
  }
}

/** A temporary folder; those who kill processes that write into it go before it at the exit. */
export function scratchFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'bench-'));
  // A database that runs as another user has its own folder in it.
  chmodSync(path, 0o711);
  const remove = () => removeFolder(path);
  process.once('exit', remove);
  return {
    path,
    [Symbol.dispose]() {
      process.off('exit', remove);
      remove();
    },
  };
}

/**
 * Waits without the event loop, which an exiting process no longer has. A folder that something is
 * written into meanwhile may be left standing without an error.
 */
function removeFolder(path: string): void {
  const sleeper = new Int32Array(new SharedArrayBuffer(4));
  for (let removals = 0; removals < REMOVALS_MAX && existsSync(path); removals++) {
    if (removals > 0) Atomics.wait(sleeper, 0, 0, REMOVAL_WAIT_MS);
    try {
      rmSync(path, { recursive: true, force: true });
    } catch {
      // It is looked at again.
    }
  }
}
