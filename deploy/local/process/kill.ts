/** Ending processes that are known to be ours. */
import type { Clock } from '#shared/clock.ts';
import { isRunning, type ProcessIdentity } from './identity.ts';

/** After SIGKILL a process is gone at once, unless the kernel holds it; do not wait for ever. */
export const KILL_WAIT_MS = 5_000;
const POLL_MS = 20;

/**
 * SIGKILL to what `find` finds, until it finds nothing more: a process may have started another
 * one between the search and its end. Returns how many there were.
 */
export async function killAll(
  clock: Clock,
  find: () => readonly ProcessIdentity[],
): Promise<number> {
  const deadlineMs = clock.monotonicMs() + KILL_WAIT_MS;
  const seen = new Set<string>();
  for (let found = find(); found.length > 0; found = find()) {
    for (const identity of found) {
      seen.add(`${identity.pid} ${identity.startTicks}`);
      if (isRunning(identity)) sendSignal(identity.pid, 'SIGKILL');
    }
    if (clock.monotonicMs() >= deadlineMs) break;
    await clock.sleep(POLL_MS);
  }
  return seen.size;
}

/** Sends a signal to a process, or to a group by its negative id; one that is gone is fine. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone in the meantime.
  }
}
