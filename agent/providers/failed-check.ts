/** What a check that failed says of its target. */
import type { TargetStatus } from './provider.ts';

/** Once `signal` has aborted, whatever was thrown means that the time was over. */
export function failedCheck(
  error: unknown,
  signal: AbortSignal,
  reasonOf: (error: unknown) => string,
): Pick<TargetStatus, 'ready' | 'reason' | 'message'> {
  if (signal.aborted) {
    return { ready: false, reason: 'Timeout', message: 'the check ran out of time' };
  }
  const message = error instanceof Error ? error.message : String(error);
  return { ready: false, reason: reasonOf(error), message };
}
