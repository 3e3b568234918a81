/** Waiting for real processes: an expectation is tried again until it holds or time is up. */
import { systemClock } from '#shared/clock.ts';

const POLL_MS = 20;

/** Resolves with what `attempt` gives once it does not throw; rejects with its last error. */
export async function eventually<T>(attempt: () => T | Promise<T>, timeoutMs = 10_000): Promise<T> {
  const deadlineMs = systemClock.monotonicMs() + timeoutMs;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (systemClock.monotonicMs() >= deadlineMs) throw error;
    }
    await systemClock.sleep(POLL_MS);
  }
}
