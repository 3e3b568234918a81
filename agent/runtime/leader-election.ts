/**
 * One leader among several replicas, by a lease that the holder renews, as client-go's
 * leaderelection has it. Safe as long as clocks run at about the same rate, whatever they show:
 * - another's lease is over only when this process has watched its record stay unchanged for the
 *   whole lease duration; wall clocks of two machines are never compared;
 * - the holder stops earlier, `renewDeadlineMs` after it SENT the last renewal that was confirmed,
 *   and `assertHeld` compares with the clock, so that a process which was frozen cannot act on;
 * - every write names the version it replaces, so that of two that compete one gets a conflict.
 */
import type { Clock, Random } from '#shared/clock.ts';
import { pause, withDeadline } from './deadline.ts';
import { type Leadership, LeadershipLostError } from './leadership.ts';
import {
  type ElectionTiming,
  type LeaseRecord,
  type LeaseStore,
  look,
  mayAcquire,
  nothingSeen,
  releasedRecord,
  renewedRecord,
  type StoredLease,
  takingRecord,
} from './lease.ts';
import { Tenure } from './tenure.ts';

/** What the election tells; implemented by telemetry. */
export interface ElectionObserver {
  becameLeader(term: number): void;
  /** Leadership ended before it was asked to. */
  lost(reason: string): void;
  /** Leadership ended in order, and others are free to take it. */
  released(): void;
  /** Somebody else leads; told once for each holder. */
  following(holder: string): void;
  /** The store could not be asked, for the `failures`th time in a row. */
  failed(error: unknown, failures: number): void;
}

export interface ElectionDeps {
  readonly store: LeaseStore;
  /** Unique to this process: whoever finds its own identity in the record takes the lease. */
  readonly identity: string;
  readonly timing: ElectionTiming;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer: ElectionObserver;
  /** Asks for an orderly end. */
  readonly signal: AbortSignal;
  /** All that only a leader may do; must end soon after `leadership.signal` aborts. */
  readonly lead: (leadership: Leadership) => Promise<void>;
}

/** Tries to acquire are up to so much further apart, as in client-go; keeps replicas apart. */
const ACQUIRE_JITTER = 1.2;
/** Of the renew deadline, for one request: leaves time for a second one. */
const REQUEST_SHARE = 0.5;
const RELEASE_DEADLINE_MS = 3_000;
/** A renewal that was still on its way can cost one try, an edit by hand another. */
const RELEASE_TRIES_MAX = 3;

/**
 * Waits to become the leader, leads, and ends: resolves after a stop (`lead` has settled by then
 * and the lease is released) or when `lead` resolves by itself, rejects with `LeadershipLostError`
 * after a loss and with the error of `lead` when that fails. One election for each call.
 */
export async function runElection(deps: ElectionDeps): Promise<void> {
  checkTiming(deps.timing);
  const won = await acquire(deps);
  if (won !== undefined) await hold(deps, won);
}

function checkTiming({ leaseDurationMs, renewDeadlineMs, retryPeriodMs }: ElectionTiming): void {
  if (leaseDurationMs > renewDeadlineMs && renewDeadlineMs > retryPeriodMs && retryPeriodMs > 0) {
    return;
  }
  throw new RangeError(
    'timing of the leader election: the lease duration must be above the renew deadline, ' +
      'and that above the retry period',
  );
}

interface Won {
  readonly stored: StoredLease;
  /** Monotonic time right before the request that won was sent. */
  readonly sentMs: number;
}

/** undefined after a stop. */
async function acquire(deps: ElectionDeps): Promise<Won | undefined> {
  const { clock, random, observer, signal, timing } = deps;
  const candidate = createCandidate(deps);
  let failures = 0;
  while (!signal.aborted) {
    try {
      const won = await candidate.tryOnce();
      if (won !== undefined) return won;
      failures = 0;
    } catch (error) {
      if (!signal.aborted) observer.failed(error, ++failures);
    }
    await pause(clock, timing.retryPeriodMs * (1 + ACQUIRE_JITTER * random()), signal);
  }
  if (candidate.mayHold) await release(deps, undefined);
  return undefined;
}

function createCandidate(deps: ElectionDeps) {
  const { store, clock, identity, timing, observer, signal } = deps;
  let sight = nothingSeen(clock.monotonicMs(), timing);
  let told = '';
  let mayHold = false;

  return {
    /** Whether a write may have been stored without its answer having come. */
    get mayHold() {
      return mayHold;
    },
    async tryOnce(): Promise<Won | undefined> {
      const found = await request(deps, signal, (deadline) => store.read(deadline));
      sight = look(sight, found, clock.monotonicMs(), timing);
      if (!mayAcquire(sight, identity, clock.monotonicMs())) {
        if (told !== sight.holder) observer.following(sight.holder);
        told = sight.holder;
        return undefined;
      }
      const record = takingRecord(sight, identity, clock.now(), timing);
      const sentMs = clock.monotonicMs();
      mayHold = true;
      const stored = await write(deps, found?.version, record, signal);
      mayHold = stored !== 'conflict';
      if (stored === 'conflict') return undefined;
      // An answer that took too long is no leadership any more; the next try finds its own record.
      const inTime = clock.monotonicMs() < sentMs + timing.renewDeadlineMs;
      return inTime ? { stored, sentMs } : undefined;
    },
  };
}

async function hold(deps: ElectionDeps, { stored, sentMs }: Won): Promise<void> {
  const { observer, signal, lead } = deps;
  if (signal.aborted) return release(deps, stored);
  const tenure = new Tenure({
    term: stored.record.term,
    sentMs,
    renewDeadlineMs: deps.timing.renewDeadlineMs,
    clock: deps.clock,
    onLost: (reason) => observer.lost(reason),
  });
  observer.becameLeader(tenure.term);
  const onStop = () => tenure.stop(signal.reason);
  signal.addEventListener('abort', onStop, { once: true });
  // Goes on after a stop, until `lead` has ended: whatever that still does is done as the leader.
  const renewing = renew(deps, tenure, stored);
  let failure: { readonly error: unknown } | undefined;
  try {
    await lead(tenure);
  } catch (error) {
    failure = { error };
  }
  tenure.end();
  signal.removeEventListener('abort', onStop);
  const last = await renewing;
  const { lost } = tenure;
  if (lost === undefined) {
    await release(deps, last);
    observer.released();
  }
  if (lost !== undefined && !signal.aborted) {
    if (failure === undefined || failure.error instanceof LeadershipLostError) throw lost;
    throw new LeadershipLostError(lost.message, { cause: failure.error });
  }
  if (failure !== undefined && !isOfStop(failure.error, signal)) throw failure.error;
}

/** Whether `lead` failed only since it was told to end. */
function isOfStop(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || error instanceof LeadershipLostError);
}

/** Renews until the tenure is over; resolves with the lease as it was last seen. */
async function renew(
  deps: ElectionDeps,
  tenure: Tenure,
  stored: StoredLease,
): Promise<StoredLease> {
  let last = stored;
  let failures = 0;
  let triedMs = deps.clock.monotonicMs();
  for (;;) {
    // A try that took longer than the period, most likely without an answer, is followed at once.
    const waitMs = triedMs + deps.timing.retryPeriodMs - deps.clock.monotonicMs();
    await pause(deps.clock, Math.max(waitMs, 0), tenure.renewals);
    if (tenure.renewals.aborted) return last;
    triedMs = deps.clock.monotonicMs();
    try {
      last = await renewOnce(deps, tenure, last);
      failures = 0;
    } catch (error) {
      if (tenure.renewals.aborted) return last;
      deps.observer.failed(error, ++failures);
    }
  }
}

async function renewOnce(
  deps: ElectionDeps,
  tenure: Tenure,
  last: StoredLease,
): Promise<StoredLease> {
  const renewed = await writeRenewal(deps, tenure, last.version, last.record);
  if (renewed !== 'conflict') return renewed;
  // A renewal whose answer was lost, an edit by hand, a deletion, or a takeover.
  const found = await request(deps, tenure.renewals, (signal) => deps.store.read(signal));
  if (found !== undefined) {
    const { holder, term } = found.record;
    if (holder !== deps.identity || term !== tenure.term) {
      tenure.lose(holder === '' ? 'the lease was released' : `the lease passed to ${holder}`);
      return found;
    }
  }
  const again = await writeRenewal(deps, tenure, found?.version, found?.record ?? last.record);
  return again === 'conflict' ? last : again;
}

async function writeRenewal(
  deps: ElectionDeps,
  tenure: Tenure,
  version: string | undefined,
  former: LeaseRecord,
): Promise<StoredLease | 'conflict'> {
  const record = renewedRecord(former, deps.clock.now(), deps.timing);
  const sentMs = deps.clock.monotonicMs();
  const stored = await write(deps, version, record, tenure.renewals);
  if (stored !== 'conflict') tenure.renewed(sentMs);
  return stored;
}

/** Lets the next replica take over at once. Never throws: without it the lease runs out. */
async function release(deps: ElectionDeps, last: StoredLease | undefined): Promise<void> {
  const { store, clock, observer, identity } = deps;
  try {
    await withDeadline(clock, RELEASE_DEADLINE_MS, undefined, async (signal) => {
      let known = last;
      for (let tries = 0; tries < RELEASE_TRIES_MAX; tries++) {
        known ??= await store.read(signal);
        if (known?.record.holder !== identity) return;
        const record = releasedRecord(known.record, clock.now());
        if ((await store.replace(known.version, record, signal)) !== 'conflict') return;
        known = undefined;
      }
    });
  } catch (error) {
    observer.failed(error, 1);
  }
}

/** Replaces `version`, or creates the lease when there was none. */
function write(
  deps: ElectionDeps,
  version: string | undefined,
  record: LeaseRecord,
  signal: AbortSignal,
): Promise<StoredLease | 'conflict'> {
  return request(deps, signal, (deadline) =>
    version === undefined
      ? deps.store.create(record, deadline)
      : deps.store.replace(version, record, deadline),
  );
}

function request<T>(
  { clock, timing }: ElectionDeps,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withDeadline(clock, timing.renewDeadlineMs * REQUEST_SHARE, signal, call);
}
