/** How soon the controller looks at a Proxy again when no event tells it to. */

export interface PollRange {
  readonly minMs: number;
  readonly maxMs: number;
}

export interface Intervals {
  /** While a machine comes up. */
  readonly provisioningPoll: PollRange;
  /** While a machine goes away. */
  readonly deletionPoll: PollRange;
  /** For the next step of something that moves. */
  readonly requeueNowMs: number;
  /** After a quota refusal, and for what only a person can heal. */
  readonly quotaRetryMs: number;
  /** A running machine is looked at this often. */
  readonly driftPollMs: number;
  /** Credentials of external proxies are read again this often. */
  readonly secretRefreshMs: number;
  /** A Secret that is missing or unusable is looked for again this often. */
  readonly secretRetryMs: number;
}

export const DEFAULT_INTERVALS: Intervals = {
  provisioningPoll: { minMs: 1_000, maxMs: 10_000 },
  deletionPoll: { minMs: 1_000, maxMs: 10_000 },
  requeueNowMs: 1_000,
  quotaRetryMs: 300_000,
  driftPollMs: 30_000,
  secretRefreshMs: 60_000,
  secretRetryMs: 5_000,
};

/** Polls come at half of the time already waited: few are wasted, and none is late by much. */
const WAITED_PER_POLL = 2;

/**
 * Time until the next poll of something that has been moving since `sinceMs`. A pod that starts in
 * a second is seen a second later; a machine that takes minutes is asked about every `maxMs`.
 * A machine that dies while it comes up never left "moving", so a crash loop slows down as well.
 */
export function pollDelayMs(range: PollRange, sinceMs: number, nowMs: number): number {
  const wantedMs = (nowMs - sinceMs) / WAITED_PER_POLL;
  return Math.round(Math.min(Math.max(wantedMs, range.minMs), range.maxMs));
}
