/** Ending processes that are known to be ours. */
import type { Clock } from '#shared/clock.ts';
import { isRunning, type ProcessIdentity } from './identity.ts';

/** After SIGKILL a process is gone at once, unless the kernel holds it; do not wait for ever. */
export const KILL_WAIT_MS = 5_000;
const POLL_MS = 20;

/** SIGKILL to each that still runs, and waits until they are gone. */
export async function killAll(clock: Clock, identities: readonly ProcessIdentity[]): Promise<void> {
  const deadlineMs = clock.monotonicMs() + KILL_WAIT_MS;
  for (const identity of identities) if (isRunning(identity)) sendSignal(identity.pid, 'SIGKILL');
  while (identities.some(isRunning) && clock.monotonicMs() < deadlineMs) {
    await clock.sleep(POLL_MS);
  }
}

/** Sends a signal to a process, or to a group by its negative id; one that is gone is fine. */
export function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // Gone in the meantime.
  }
}
