import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type ElectionObserver, runElection } from '#agent/runtime/leader-election.ts';
import { LeadershipLostError } from '#agent/runtime/leadership.ts';
import type { LeaseRecord } from '#agent/runtime/lease.ts';
import { FakeClock } from '#test/fakes/clock.ts';
import { type ElectorOptions, FINE, LeaseServer, startElector, TIMING } from './election-world.ts';

const START_MS = Date.UTC(2026, 0, 1);
const START_TERM = START_MS / 1000;

const SILENT: ElectionObserver = {
  becameLeader() {},
  lost() {},
  released() {},
  following() {},
  failed() {},
};

let world: FakeClock;
let server: LeaseServer;

beforeEach(() => {
  world = new FakeClock(START_MS);
  server = new LeaseServer(world);
});

const start = (identity: string, options: Partial<ElectorOptions> = {}) =>
  startElector({ world, server, identity, ...options });

function recordOf(holder: string, fields: Partial<LeaseRecord> = {}): LeaseRecord {
  const times = { acquiredAtMs: 0, renewedAtMs: 0 };
  return { holder, leaseDurationSeconds: 15, ...times, transitions: 3, term: 7, ...fields };
}

const away = () => ({ ...FINE, server: () => 'refusing' as const });

describe('acquiring', () => {
  test('the first process of all leads at once, in a term of the time', async () => {
    const a = start('a');
    await world.advance(1_000);
    expect(a.leads).toBe(true);
    expect(a.leadership?.term).toBe(START_TERM);
    expect(server.stored?.record).toEqual({
      holder: 'a',
      leaseDurationSeconds: 15,
      acquiredAtMs: START_MS + 10,
      renewedAtMs: START_MS + 10,
      transitions: 0,
      term: START_TERM,
    });
  });

  test.each([
    ['the time when that is ahead', 7, START_TERM],
    ['one more than the last when that is ahead', START_TERM + 500, START_TERM + 501],
    ['one more within the same second', START_TERM, START_TERM + 1],
  ])('a term is %s', async (_, former, term) => {
    server.put(recordOf('', { term: former }));
    const a = start('a');
    await world.advance(1_000);
    expect(a.leadership?.term).toBe(term);
    expect(server.stored?.record).toMatchObject({ term, transitions: 4 });
  });

  test('a holder that renews is followed, told once, and never overtaken', async () => {
    const a = start('a');
    await world.advance(1_000);
    const b = start('b');
    await world.advance(3_600_000);
    expect(a.leads).toBe(true);
    expect(b.told).toEqual(['follows a']);
    expect(new Set(server.history.map(({ term }) => term))).toEqual(new Set([START_TERM]));
  });

  test('a silent holder is over after its lease duration by the clock of who watches', async () => {
    // Renewed an age ago, as the wall clocks have it: that proves nothing.
    server.put(recordOf('gone', { renewedAtMs: 1, leaseDurationSeconds: 30 }));
    const b = start('b', { skewMs: 86_400_000 });
    await world.advance(30_000);
    expect(b.told).toEqual(['follows gone']);
    await world.advance(TIMING.retryPeriodMs + 20);
    expect(b.leads).toBe(true);
  });

  test('any change of the record starts the wait anew', async () => {
    server.put(recordOf('gone'));
    const b = start('b');
    await world.advance(14_000);
    server.put(recordOf('gone'));
    await world.advance(14_000);
    expect(b.leadership).toBeUndefined();
    await world.advance(5_000);
    expect(b.leads).toBe(true);
  });

  test('a record without a duration is waited for as long as an own one', async () => {
    server.put(recordOf('gone', { leaseDurationSeconds: 0 }));
    const b = start('b');
    await world.advance(15_000);
    expect(b.leadership).toBeUndefined();
    await world.advance(3_000);
    expect(b.leads).toBe(true);
  });

  test('of two that find the lease free one leads and the other follows it', async () => {
    server.put(recordOf(''));
    const electors = [start('a'), start('b')];
    await world.advance(5_000);
    expect(electors.map(({ leads }) => leads)).toEqual([true, false]);
    expect(electors[1]?.told).toEqual(['follows a']);
  });

  test('a server that is away is waited for, each try later than the retry period', async () => {
    server.network = away();
    const a = start('a', { random: () => 0.5 });
    await world.advance(32_000);
    // 2 s and 0.6 × 2 s of jitter, and both ways.
    expect(server.requests).toBe(10);
    expect(a.told.slice(0, 3)).toEqual(['failed 1', 'failed 2', 'failed 3']);
    server.network = FINE;
    await world.advance(4_000);
    expect(a.leads).toBe(true);
  });

  test('a lost answer to the acquiring write costs no wait for the own lease', async () => {
    server.network = { ...FINE, losesAnswer: () => server.history.length === 1 };
    const a = start('a');
    await world.advance(1_000);
    expect(server.stored?.record.holder).toBe('a');
    expect(a.leads).toBe(false);
    server.network = FINE;
    await world.advance(7_000);
    expect(a.leadership?.term).toBeGreaterThan(START_TERM);
    expect(a.leads).toBe(true);
  });

  test('a win that is learnt of after the renew deadline is no leadership', async () => {
    server.put(recordOf(''));
    const a = start('a');
    await world.advance(16);
    expect(server.stored?.record.holder).toBe('a');
    a.clock.freeze();
    await world.advance(10_000);
    a.clock.thaw();
    await world.advance(1);
    expect(a.leadership).toBeUndefined();
    await world.advance(3_000);
    expect(a.leads).toBe(true);
    expect(a.leadership?.term).toBe(START_TERM + 12);
  });
});

describe('losing', () => {
  test('without confirmed renewals leadership ends at the renew deadline', async () => {
    const a = start('a');
    await world.advance(2_500);
    const sentMs = (server.stored?.record.renewedAtMs ?? 0) - START_MS;
    server.network = away();
    await world.advance(sentMs + 9_999 - 2_500);
    expect(a.leads).toBe(true);
    expect(a.outcome).toBe('running');
    await world.advance(1);
    expect(a.leads).toBe(false);
    expect(a.leadership?.signal.reason).toBeInstanceOf(LeadershipLostError);
    expect(a.outcome).toBe(a.leadership?.signal.reason);
    expect(a.told.at(-1)).toBe('lost: no renewal was confirmed within 10000 ms');
    expect(world.pendingTimers).toBe(0);
  });

  test('the deadline counts from the sending of a renewal, not from its answer', async () => {
    const a = start('a');
    await world.advance(1_000);
    server.network = { ...FINE, latencyMs: () => 2_000 };
    await world.advance(5_200);
    const renewedMs = (server.stored?.record.renewedAtMs ?? 0) - START_MS;
    expect(renewedMs).toBe(2_020);
    server.network = { ...FINE, server: () => 'silent' };
    await world.advance(renewedMs + 9_999 - 6_200);
    expect(a.leads).toBe(true);
    await world.advance(1);
    expect(a.leads).toBe(false);
  });

  test('a process that was frozen past its lease cannot act, though no timer fired', async () => {
    const a = start('a');
    await world.advance(1_000);
    const b = start('b');
    await world.advance(1_000);
    a.clock.freeze();
    await world.advance(20_000);
    expect(b.leads).toBe(true);
    expect(a.leadership?.signal.aborted).toBe(false);
    expect(() => a.leadership?.assertHeld()).toThrow(LeadershipLostError);
    a.clock.thaw();
    await world.advance(1_000);
    expect(a.outcome).toBeInstanceOf(LeadershipLostError);
    expect(b.leads).toBe(true);
    expect(server.stored?.record.holder).toBe('b');
  });

  test.each([
    ['before', false],
    ['after', true],
  ])('an answer that a woken process gets %s its timer does not revive it', async (_, reversed) => {
    const a = start('a');
    await world.advance(2_021);
    a.clock.freeze();
    // Past the deadline of the last confirmed renewal, before that of the one under way.
    await world.advance(8_500);
    a.clock.thaw(reversed);
    await world.advance(1);
    expect(server.history).toHaveLength(2);
    expect(a.outcome).toBeInstanceOf(LeadershipLostError);
  });

  test('work that notices the loss before any timer does not release the lease', async () => {
    const a = start('a', {
      lead: async (leadership, clock) => {
        await clock.sleep(500);
        leadership.assertHeld();
      },
    });
    await world.advance(300);
    a.clock.freeze();
    await world.advance(20_000);
    a.clock.thaw();
    await world.advance(100);
    expect(a.outcome).toBeInstanceOf(LeadershipLostError);
    expect(a.outcome).not.toHaveProperty('cause');
    expect(a.told.at(-1)).toBe('lost: no renewal was confirmed within 10000 ms');
    expect(server.history).toHaveLength(1);
  });

  test('a rejection waits until the work has settled, which then is never acted on', async () => {
    const a = start('a', {
      lead: async ({ signal }, clock) => {
        await clock.sleep(600_000, signal).catch(() => {});
        await clock.sleep(5_000);
      },
    });
    await world.advance(1_000);
    server.network = away();
    await world.advance(11_000);
    expect(a.leadership?.signal.aborted).toBe(true);
    expect(a.outcome).toBe('running');
    server.network = FINE;
    await world.advance(5_000);
    expect(a.outcome).toBeInstanceOf(LeadershipLostError);
    expect(server.stored?.record.holder).toBe('a');
  });

  test('work that fails over its loss tells of the loss, and keeps its own error', async () => {
    const error = new Error('a call was cut off');
    const a = start('a', {
      lead: ({ signal }, clock) => clock.sleep(600_000, signal).catch(() => Promise.reject(error)),
    });
    await world.advance(1_000);
    server.network = away();
    await world.advance(11_000);
    expect(a.outcome).toBeInstanceOf(LeadershipLostError);
    expect(a.outcome).toMatchObject({ cause: error });
  });

  test.each([
    ['passed to somebody else', recordOf('z', { term: START_TERM + 9 }), 'the lease passed to z'],
    ['was released by hand', recordOf('', { term: START_TERM }), 'the lease was released'],
    ['has another term', recordOf('a', { term: START_TERM + 1 }), 'the lease passed to a'],
  ])('a lease that %s is lost with the next renewal', async (_, record, reason) => {
    const a = start('a');
    await world.advance(1_000);
    server.put(record);
    await world.advance(2_000);
    expect(a.told.at(-1)).toBe(`lost: ${reason}`);
    expect(a.outcome).toBeInstanceOf(LeadershipLostError);
    expect(server.stored?.record).toEqual(record);
  });
});

describe('keeping', () => {
  test('an edit by hand is renewed over', async () => {
    const a = start('a');
    await world.advance(1_000);
    const { record } = server.stored ?? { record: recordOf('a') };
    server.put(record);
    await world.advance(20_000);
    expect(a.leads).toBe(true);
    expect(a.told).toEqual([`leads ${START_TERM}`]);
  });

  test('renewals whose answers were lost are found and renewed', async () => {
    const a = start('a');
    await world.advance(1_000);
    const before = server.history.length;
    const lost = new Set<number>();
    const losesAnswer = () => {
      const { length } = server.history;
      if (length % 3 !== 0 || lost.has(length)) return false;
      lost.add(length);
      return true;
    };
    server.network = { ...FINE, losesAnswer };
    await world.advance(60_000);
    expect(a.leads).toBe(true);
    expect(server.history.length).toBeGreaterThan(before + 5);
    expect(lost.size).toBeGreaterThan(3);
  });

  test('a deleted lease is made again by its leader, while those who knew it wait', async () => {
    const a = start('a');
    await world.advance(1_000);
    const b = start('b');
    await world.advance(2_900);
    server.stored = undefined;
    await world.advance(60_000);
    expect(a.leads).toBe(true);
    expect(server.stored).toMatchObject({ record: { holder: 'a', term: START_TERM } });
    expect(b.told).toEqual(['follows a']);
  });

  test('a term grows past a deleted lease, even with a clock that was set back', async () => {
    server.put(recordOf('gone', { term: START_TERM + 40 }));
    const b = start('b', { skewMs: -1_000_000 });
    await world.advance(1_000);
    server.stored = undefined;
    await world.advance(14_000);
    expect(b.leadership).toBeUndefined();
    await world.advance(6_000);
    expect(b.leadership?.term).toBe(START_TERM + 41);
  });
});

test('a term grows past one that was seen in a record that somebody replaced', async () => {
  server.put(recordOf('gone', { term: START_TERM + 40 }));
  const b = start('b');
  await world.advance(1_000);
  server.put(recordOf('', { term: 0 }));
  await world.advance(3_000);
  expect(b.leadership?.term).toBe(START_TERM + 41);
});

describe('ending', () => {
  test('a stop waits for the work, goes on renewing for it, and then releases', async () => {
    const a = start('a', {
      lead: async ({ signal }, clock) => {
        await clock.sleep(600_000, signal).catch(() => {});
        await clock.sleep(30_000);
      },
    });
    await world.advance(1_000);
    const b = start('b');
    await world.advance(1_000);
    a.stop();
    await world.advance(29_900);
    expect(a.leads).toBe(true);
    await world.advance(200);
    expect(a.outcome).toBe('ended');
    expect(a.told).toEqual([`leads ${START_TERM}`, 'released']);
    expect(() => a.leadership?.assertHeld()).toThrow(LeadershipLostError);
    expect(server.stored?.record).toMatchObject({ holder: '', leaseDurationSeconds: 1 });
    await world.advance(TIMING.retryPeriodMs + 20);
    expect(b.leads).toBe(true);
    expect(b.leadership?.term).toBeGreaterThan(START_TERM);
  });

  test('work that ends with the reason of the stop has not failed', async () => {
    const a = start('a', { lead: ({ signal }, clock) => clock.sleep(600_000, signal) });
    await world.advance(1_000);
    a.stop();
    await world.advance(100);
    expect(a.outcome).toBe('ended');
  });

  test('failed work releases the lease and is the error', async () => {
    const error = new Error('out of order');
    const a = start('a', {
      lead: (_, clock) => clock.sleep(5_000).then(() => Promise.reject(error)),
    });
    await world.advance(6_000);
    expect(a.outcome).toBe(error);
    expect(server.stored?.record.holder).toBe('');
    expect(a.leadership?.signal.aborted).toBe(true);
    expect(world.pendingTimers).toBe(0);
  });

  test('a release that meets a renewal on its way looks again', async () => {
    const a = start('a');
    // Between the sending of a renewal and its arrival.
    await world.advance(2_022);
    a.stop();
    await world.advance(100);
    expect(a.outcome).toBe('ended');
    expect(server.history.map(({ holder }) => holder)).toEqual(['a', 'a', '']);
    expect(server.stored?.record.holder).toBe('');
  });

  test('a release that gets no answer holds a stop up for a few seconds only', async () => {
    const a = start('a');
    await world.advance(1_000);
    server.network = { ...FINE, server: () => 'silent' };
    a.stop();
    await world.advance(3_000);
    expect(a.outcome).toBe('ended');
    expect(a.told).toContain('failed 1');
    expect(world.pendingTimers).toBe(0);
  });

  test('a follower stops at once and leaves the lease alone', async () => {
    server.put(recordOf('z'));
    const b = start('b');
    await world.advance(1_000);
    b.stop();
    await world.advance(0);
    expect(b.outcome).toBe('ended');
    expect(world.pendingTimers).toBe(0);
    expect(server.history).toHaveLength(1);
  });

  test('a stop right after the acquiring write gives the lease back', async () => {
    server.put(recordOf(''));
    const a = start('a');
    await world.advance(16);
    expect(server.stored?.record.holder).toBe('a');
    a.stop();
    await world.advance(100);
    expect(a.outcome).toBe('ended');
    expect(a.leadership).toBeUndefined();
    expect(server.stored?.record.holder).toBe('');
  });
});

test('a stop that comes with the win gives the lease back and begins nothing', async () => {
  const stop = new AbortController();
  const store = server.storeOf(world);
  const lead = vi.fn();
  const ended = runElection({
    store: {
      ...store,
      async create(record, signal) {
        const stored = await store.create(record, signal);
        stop.abort();
        return stored;
      },
    },
    identity: 'a',
    timing: TIMING,
    clock: world,
    random: () => 0,
    observer: SILENT,
    signal: stop.signal,
    lead,
  });
  await world.advance(100);
  await ended;
  expect(lead).not.toHaveBeenCalled();
  expect(server.stored?.record.holder).toBe('');
});

test.each([
  [{ leaseDurationMs: 10_000 }],
  [{ renewDeadlineMs: 2_000 }],
  [{ retryPeriodMs: 0 }],
  [{ retryPeriodMs: Number.NaN }],
])('timing that cannot be safe (%j) is refused', async (timing) => {
  const a = start('a', { timing: { ...TIMING, ...timing } });
  await expect(a.result).rejects.toThrow('timing of the leader election');
  expect(server.requests).toBe(0);
});
