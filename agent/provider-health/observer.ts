/** What the monitor tells about the providers; implemented by telemetry. */
import type { TargetStatus } from '#agent/providers/provider.ts';

export interface CheckTimes {
  readonly durationMs: number;
  /** When the check ended, in milliseconds since the epoch. */
  readonly checkedAtMs: number;
}

export interface ProviderHealthObserver {
  /** Each target, in each round. */
  checked(provider: string, target: TargetStatus, times: CheckTimes): void;
  /** A target went down, or is down for another reason than before. */
  targetDown(provider: string, target: TargetStatus): void;
  /** A target that was down is ready. */
  targetUp(provider: string, target: TargetStatus): void;
  /** A target is not checked any more. */
  targetGone(provider: string, target: string): void;
  /** The object could not be written; the next round tries again. `failures` in a row. */
  writeFailed(provider: string, error: unknown, failures: number): void;
  /** The first write that succeeded after a failed one. */
  writeRecovered(provider: string): void;
  /** Objects of providers that are not configured were deleted. */
  pruned(names: readonly string[]): void;
  pruneFailed(error: unknown, failures: number): void;
}
