/**
 * From single probes to a verdict: thresholds, and what of it is worth a status write. Pure; the
 * engine owns the state, the controller its representation in the status.
 */
import type { Verdict } from './verdict-reader.ts';

export type { Verdict } from './verdict-reader.ts';

export interface Thresholds {
  /** Successes in a row that make a proxy healthy. */
  readonly successThreshold: number;
  /** Failures in a row that make a proxy unhealthy. */
  readonly failureThreshold: number;
}

export type ProbeResult =
  | { readonly ok: true; readonly latencyMillis: number; readonly egressIP?: string }
  | {
      readonly ok: false;
      /** CamelCase, from a closed set (reasons.ts). */
      readonly reason: string;
      /** For a person; never holds credentials. */
      readonly message: string;
      readonly latencyMillis: number;
    };

export interface HealthState {
  /** What the rest of the agent reads; moves only when it is worth a status write. */
  readonly verdict: Verdict;
  /** Results of the same kind in a row, the last one included. */
  readonly run: { readonly ok: boolean; readonly length: number } | null;
}

export interface Recorded {
  readonly state: HealthState;
  /** Whoever reads verdicts is to look again. */
  readonly notify: boolean;
}

/** A change of latency below both of these is noise. */
const LATENCY_CHANGE_MS_MIN = 20;
const LATENCY_CHANGE_RATIO_MIN = 0.5;
/** Changes that are no transition are reported at most this often. */
export const REPORT_INTERVAL_MS_MIN = 60_000;

const UNPROBED: Verdict = {
  healthy: null,
  reason: 'NotProbed',
  message: 'no verdict yet: the proxy has not been probed often enough',
  probedAtMs: 0,
};

/** A state without history; `seed` is the verdict of an earlier leader, its counters unknown. */
export function initialState(seed?: Verdict): HealthState {
  return { verdict: seed ?? UNPROBED, run: null };
}

/**
 * Takes in one probe. Notices are due at a transition, at a report (latency or egress address
 * moved), and at the first failure of a proxy that is not known as unhealthy: its machine may be
 * dead, and asking the provider at once beats waiting for the threshold.
 */
export function record(
  state: HealthState,
  result: ProbeResult,
  thresholds: Thresholds,
  nowMs: number,
): Recorded {
  const length = state.run?.ok === result.ok ? state.run.length + 1 : 1;
  const run = { ok: result.ok, length };
  const needed = result.ok ? thresholds.successThreshold : thresholds.failureThreshold;
  const flips = state.verdict.healthy !== result.ok && length >= needed;
  const steady = state.verdict.healthy === result.ok;
  if (flips || (steady && worthReporting(state.verdict, result, nowMs))) {
    return { state: { verdict: verdictFrom(state.verdict, result, nowMs), run }, notify: true };
  }
  const suspicion = !result.ok && length === 1 && state.verdict.healthy !== false;
  return { state: { verdict: state.verdict, run }, notify: suspicion };
}

function worthReporting(reported: Verdict, result: ProbeResult, nowMs: number): boolean {
  if (nowMs - reported.probedAtMs < REPORT_INTERVAL_MS_MIN) {
    // A first egress address decides on cooldowns at the edge, so it does not wait.
    return result.ok && result.egressIP !== undefined && reported.egressIP === undefined;
  }
  if (!result.ok) return result.reason !== reported.reason;
  if (result.egressIP !== undefined && result.egressIP !== reported.egressIP) return true;
  if (reported.latencyMillis === undefined) return true;
  const change = Math.abs(result.latencyMillis - reported.latencyMillis);
  const noise = Math.max(LATENCY_CHANGE_MS_MIN, reported.latencyMillis * LATENCY_CHANGE_RATIO_MIN);
  return change > noise;
}

function verdictFrom(previous: Verdict, result: ProbeResult, nowMs: number): Verdict {
  // The address that targets saw last stays known while a proxy fails.
  const egressIP = (result.ok ? result.egressIP : undefined) ?? previous.egressIP;
  const egress = egressIP === undefined ? {} : { egressIP };
  if (!result.ok) {
    const { reason, message } = result;
    return { healthy: false, reason, message, probedAtMs: nowMs, ...egress };
  }
  return {
    healthy: true,
    reason: 'Healthy',
    message: 'the last probe through the proxy succeeded',
    probedAtMs: nowMs,
    latencyMillis: result.latencyMillis,
    ...egress,
  };
}
