/** How long a container waits before it is started again; the figures are the kubelet's. */

const RESTART_BACKOFF_MS_MIN = 10_000;
const RESTART_BACKOFF_MS_MAX = 300_000;
/** A container that ran this long starts over with the shortest wait. */
const STABLE_MS = 600_000;

/** The wait after the next end of a container, given the last wait (0: none yet). */
export function nextBackoffMs(lastMs: number, ranForMs: number): number {
  if (lastMs === 0 || ranForMs >= STABLE_MS) return RESTART_BACKOFF_MS_MIN;
  return Math.min(lastMs * 2, RESTART_BACKOFF_MS_MAX);
}
