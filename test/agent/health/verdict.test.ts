import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type HealthState,
  initialState,
  type ProbeResult,
  record,
  type Verdict,
} from '#agent/health/verdict.ts';

const thresholds = { successThreshold: 2, failureThreshold: 3 };
const ok = (latencyMillis = 50, egressIP?: string): ProbeResult => ({
  ok: true,
  latencyMillis,
  ...(egressIP === undefined ? {} : { egressIP }),
});
const bad = (reason = 'Timeout'): ProbeResult => ({
  ok: false,
  reason,
  message: `m ${reason}`,
  latencyMillis: 5000,
});
const healthyVerdict: Verdict = {
  healthy: true,
  reason: 'Healthy',
  message: 'ok',
  probedAtMs: 0,
  latencyMillis: 100,
  egressIP: '198.51.100.1',
};

/** `+` is a success, `-` a failure; the answer is the verdict after each, `!` marks a notice. */
function play(start: HealthState, results: string): string {
  let state = start;
  return [...results]
    .map((each, index) => {
      const recorded = record(state, each === '+' ? ok() : bad(), thresholds, index * 1000);
      state = recorded.state;
      const { healthy } = state.verdict;
      return `${healthy === null ? '?' : healthy ? '+' : '-'}${recorded.notify ? '!' : ''}`;
    })
    .join(' ');
}

describe('thresholds', () => {
  const unhealthy = { ...healthyVerdict, healthy: false, reason: 'Timeout' };
  test.each([
    ['a first verdict needs its run of successes', undefined, '++', '? +!'],
    ['a first verdict needs its run of failures', undefined, '---', '?! ? -!'],
    ['a mixed run starts again', undefined, '+--+-++', '? ?! ? ? ?! ? +!'],
    ['a healthy proxy is suspected at once', healthyVerdict, '-+', '+! +'],
    ['a healthy proxy turns at the threshold', healthyVerdict, '---', '+! + -!'],
    ['a failure now and then turns nothing', healthyVerdict, '--+--+', '+! + + +! + +'],
    ['an unhealthy proxy recovers at the threshold', unhealthy, '++', '- +!'],
    ['an unhealthy proxy stays quiet while it fails', unhealthy, '-----', '- - - - -'],
    ['what an earlier leader found is no run', healthyVerdict, '+++', '+ + +'],
  ])('%s', (_what, seed, results, expected) => {
    expect(play(initialState(seed), results)).toBe(expected);
  });

  test('a verdict turns only after a full run, whatever came before', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 60 }), (results) => {
        let state = initialState();
        let before: boolean | null = null;
        for (const [index, success] of results.entries()) {
          state = record(state, success ? ok() : bad(), thresholds, index).state;
          const { healthy } = state.verdict;
          if (healthy !== before) {
            const needed = success ? thresholds.successThreshold : thresholds.failureThreshold;
            expect(healthy).toBe(success);
            const run = results.slice(index + 1 - needed, index + 1);
            expect(run).toEqual(Array.from({ length: needed }, () => success));
          }
          before = healthy;
        }
      }),
    );
  });
});

describe('reports between transitions', () => {
  const minute = 60_000;
  test.each<[string, ProbeResult, number, boolean]>([
    ['a latency that moved little', ok(149, '198.51.100.1'), minute, false],
    ['a latency that grew by more than half', ok(151, '198.51.100.1'), minute, true],
    ['a latency that fell by more than half', ok(49, '198.51.100.1'), minute, true],
    [
      'a latency that moved within a minute of the last report',
      ok(900, '198.51.100.1'),
      59_999,
      false,
    ],
    ['another egress address', ok(100, '203.0.113.9'), minute, true],
    ['another egress address within the minute', ok(100, '203.0.113.9'), 1000, false],
    ['an egress address that the probe did not learn', ok(100), minute, false],
  ])('%s', (_what, result, nowMs, reported) => {
    const { state, notify } = record(initialState(healthyVerdict), result, thresholds, nowMs);
    expect(notify).toBe(reported);
    expect(state.verdict.probedAtMs).toBe(reported ? nowMs : 0);
  });

  test('small absolute changes are noise, though they are large in proportion', () => {
    const fast = initialState({ ...healthyVerdict, latencyMillis: 1 });
    expect(record(fast, ok(21), thresholds, minute).notify).toBe(false);
    expect(record(fast, ok(22), thresholds, minute).notify).toBe(true);
  });

  test('a first egress address does not wait for the minute', () => {
    const { egressIP: _, ...unknown } = healthyVerdict;
    const { state, notify } = record(initialState(unknown), ok(100, '203.0.113.9'), thresholds, 5);
    expect(notify).toBe(true);
    expect(state.verdict.egressIP).toBe('203.0.113.9');
  });

  test('successes of a proxy that is still unhealthy report nothing', () => {
    const unhealthy = initialState({ ...healthyVerdict, healthy: false });
    expect(record(unhealthy, ok(9000), thresholds, minute).notify).toBe(false);
  });

  test('another reason of a failing proxy is told once a minute', () => {
    const failing = initialState({ ...healthyVerdict, healthy: false, reason: 'Timeout' });
    expect(record(failing, bad('TlsError'), thresholds, 59_000).notify).toBe(false);
    const { state, notify } = record(failing, bad('TlsError'), thresholds, minute);
    expect(notify).toBe(true);
    expect(state.verdict.reason).toBe('TlsError');
  });
});

test('an unhealthy verdict drops the latency and keeps the egress address', () => {
  let state = initialState(healthyVerdict);
  for (let nowMs = 1; nowMs <= 3; nowMs++) state = record(state, bad(), thresholds, nowMs).state;
  expect(state.verdict).toEqual({
    healthy: false,
    reason: 'Timeout',
    message: 'm Timeout',
    probedAtMs: 3,
    egressIP: '198.51.100.1',
  });
});
