/**
 * The lease that replicas compete for: its record, where it is kept, and what a replica concludes
 * from what it has seen of it. Pure; the election itself is `leader-election.ts`.
 */

/** The API server takes a duration above zero only. */
const RELEASED_DURATION_SECONDS = 1;

export interface ElectionTiming {
  /** How long others wait for a holder that is silent. Stored as whole seconds, rounded up. */
  readonly leaseDurationMs: number;
  /** A leader that cannot renew for so long gives up; below the lease duration. */
  readonly renewDeadlineMs: number;
  /** Pause between two renewals, and (jittered) between two tries to acquire. */
  readonly retryPeriodMs: number;
}

export interface LeaseRecord {
  /** Identity of the leader; empty when nobody leads. */
  readonly holder: string;
  /** 0 when the record does not say. */
  readonly leaseDurationSeconds: number;
  /** Wall-clock times, for people to read; nothing is decided by them. */
  readonly acquiredAtMs: number;
  readonly renewedAtMs: number;
  /** How often the holder changed. */
  readonly transitions: number;
  /** Grows with each election, and stays through renewals and release. */
  readonly term: number;
}

export interface StoredLease {
  readonly record: LeaseRecord;
  /** Differs after each write by anybody. */
  readonly version: string;
}

/** Where the lease is kept. Writes are linearizable; a lost race is a result, not an error. */
export interface LeaseStore {
  /** The present record, never one of a cache; undefined when there is none. */
  read(signal: AbortSignal): Promise<StoredLease | undefined>;
  /** `conflict` when there is one by now. */
  create(record: LeaseRecord, signal: AbortSignal): Promise<StoredLease | 'conflict'>;
  /** `conflict` when the record is no longer of this version, or gone. */
  replace(
    version: string,
    record: LeaseRecord,
    signal: AbortSignal,
  ): Promise<StoredLease | 'conflict'>;
}

/** What a replica that does not lead has seen of the lease so far. */
export interface Sight {
  readonly version: string | undefined;
  /** Monotonic time at which this version, or the absence of any, was first seen. */
  readonly sinceMs: number;
  /** The last holder, also after its record was deleted. */
  readonly holder: string;
  readonly durationMs: number;
  /** Highest term so far: a deleted record must not bring an old one back. */
  readonly term: number;
  readonly transitions: number;
}

export function nothingSeen(nowMs: number, timing: ElectionTiming): Sight {
  const durationMs = timing.leaseDurationMs;
  return { version: undefined, sinceMs: nowMs, holder: '', durationMs, term: 0, transitions: -1 };
}

/**
 * `nowMs` is the monotonic time after the answer came. A record that is gone counts as one that
 * changed: its holder may lead on until it notices.
 */
export function look(
  before: Sight,
  found: StoredLease | undefined,
  nowMs: number,
  timing: ElectionTiming,
): Sight {
  const version = found?.version;
  const sinceMs = version === before.version ? before.sinceMs : nowMs;
  if (found === undefined) return { ...before, version, sinceMs };
  const { holder, leaseDurationSeconds, term, transitions } = found.record;
  return {
    version,
    sinceMs,
    holder,
    durationMs: leaseDurationSeconds * 1000 || timing.leaseDurationMs,
    term: Math.max(before.term, term),
    transitions,
  };
}

/** Whether the lease is free, over, or this replica's by a write whose answer was lost. */
export function mayAcquire(sight: Sight, identity: string, nowMs: number): boolean {
  if (sight.holder === '' || sight.holder === identity) return true;
  return nowMs >= sight.sinceMs + sight.durationMs;
}

/** The record that takes the lease; `nowMs` is wall-clock time. */
export function takingRecord(
  sight: Sight,
  identity: string,
  nowMs: number,
  timing: ElectionTiming,
): LeaseRecord {
  return {
    holder: identity,
    leaseDurationSeconds: wholeSeconds(timing.leaseDurationMs),
    acquiredAtMs: nowMs,
    renewedAtMs: nowMs,
    transitions: sight.transitions + 1,
    // Seconds since the epoch outgrow the terms of a record that was deleted.
    term: Math.max(sight.term + 1, Math.floor(nowMs / 1000)),
  };
}

export function renewedRecord(
  former: LeaseRecord,
  nowMs: number,
  timing: ElectionTiming,
): LeaseRecord {
  const leaseDurationSeconds = wholeSeconds(timing.leaseDurationMs);
  return { ...former, leaseDurationSeconds, renewedAtMs: nowMs };
}

/** Free at once, and written as client-go does; the term stays for the next one to outgrow. */
export function releasedRecord(former: LeaseRecord, nowMs: number): LeaseRecord {
  return {
    ...former,
    holder: '',
    leaseDurationSeconds: RELEASED_DURATION_SECONDS,
    acquiredAtMs: nowMs,
    renewedAtMs: nowMs,
  };
}

/** Rounded up: others must not wait for less than what was configured. */
function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1000);
}
