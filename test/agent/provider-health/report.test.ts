import { describe, expect, test } from 'vitest';
import {
  DETAILS_MAX,
  MESSAGE_LENGTH_MAX,
  reportStatus,
  TARGETS_MAX,
} from '#agent/provider-health/report.ts';
import type { TargetStatus } from '#agent/providers/provider.ts';
import { providerHealthStatusSchema } from '#shared/crd/provider-health.ts';

const T0 = Date.UTC(2026, 0, 1);
const time = (seconds: number) => new Date(T0 + seconds * 1000).toISOString();

const up = (name: string): TargetStatus => ({
  name,
  ready: true,
  reason: 'Reachable',
  message: 'ok',
});
const down = (name: string, reason = 'Timeout'): TargetStatus => ({
  name,
  ready: false,
  reason,
  message: 'no answer',
});

/** The status after each of several checks, a minute apart. */
function history(...rounds: TargetStatus[][]) {
  let status: ReturnType<typeof reportStatus> | undefined;
  return rounds.map((targets, nth) => {
    status = reportStatus({ type: 'kvm', targets, checkedAtMs: T0 + nth * 60_000 }, status);
    return status;
  });
}

describe('the summary', () => {
  test.each<[string, TargetStatus[], object]>([
    ['all ready', [up('a'), up('b')], { ready: 'True', reason: 'AllTargetsReady', targets: '2/2' }],
    [
      'one down',
      [up('a'), down('b')],
      {
        ready: 'False',
        reason: 'TargetsNotReady',
        targets: '1/2',
        message: 'b: Timeout: no answer',
      },
    ],
    [
      'all down',
      [down('a', 'Unreachable'), down('b')],
      { ready: 'False', targets: '0/2', message: 'a: Unreachable: no answer (and 1 more)' },
    ],
    ['no target', [], { ready: 'Unknown', reason: 'NoTargets', targets: '0/0' }],
  ])('of %s', (_what, targets, expected) => {
    const [status] = history(targets);
    expect(status).toMatchObject({ type: 'kvm', lastCheckTime: time(0), ...expected });
    expect(providerHealthStatusSchema.parse(status)).toEqual(status);
  });

  test('a provider without a check is unsupported, not failed, and its status never moves', () => {
    const first = reportStatus({ type: 'memory', checkedAtMs: T0 }, undefined);
    expect(first).toMatchObject({ type: 'memory', ready: 'Unknown', reason: 'Unsupported' });
    expect(reportStatus({ type: 'memory', checkedAtMs: T0 + 1 }, first)).toEqual(first);
  });
});

describe('the targets', () => {
  test('keep their transition time until ready flips, whatever else changes', () => {
    const rounds = history([up('a')], [down('a')], [down('a', 'Forbidden')], [up('a')]);
    const shown = rounds.map(({ targetStatuses }) => targetStatuses?.[0]);
    expect(shown.map((target) => target?.lastTransitionTime)).toEqual([
      time(0),
      time(60),
      time(60),
      time(180),
    ]);
    expect(shown.map((target) => target?.reason)).toEqual([
      'Reachable',
      'Timeout',
      'Forbidden',
      'Reachable',
    ]);
    expect(rounds.map(({ lastCheckTime }) => lastCheckTime)).toEqual([0, 60, 120, 180].map(time));
  });

  test('are those of the last check, a returning one being new', () => {
    const rounds = history([up('a'), up('b')], [up('b')], [up('a'), up('b')]);
    expect(rounds[1]?.targetStatuses?.map(({ name }) => name)).toEqual(['b']);
    expect(rounds[2]?.targetStatuses).toMatchObject([
      { name: 'a', lastTransitionTime: time(120) },
      { name: 'b', lastTransitionTime: time(0) },
    ]);
  });

  test('show details where there are some', () => {
    const [status] = history([{ ...up('a'), details: { version: 'v1.33.0' } }, up('b')]);
    expect(status?.targetStatuses?.map(({ details }) => details)).toEqual([
      { version: 'v1.33.0' },
      undefined,
    ]);
  });

  test('two of one name are one: the API server would refuse them', () => {
    const [status] = history([up('a'), down('a')]);
    expect(status).toMatchObject({ targets: '1/1', targetStatuses: [{ name: 'a', ready: true }] });
  });

  test('are bounded in number, and so is what each says', () => {
    const details = Object.fromEntries(
      Array.from({ length: DETAILS_MAX + 1 }, (_, nth) => [`k${nth}`, 'v'.repeat(1_000)]),
    );
    const many = Array.from({ length: TARGETS_MAX + 1 }, (_, nth) => up(`t${nth}`));
    const long = { ...down('first'), message: 'x'.repeat(MESSAGE_LENGTH_MAX + 1), details };
    const [status] = history([long, ...many]);
    expect(status?.targets).toBe(`${TARGETS_MAX + 1}/${TARGETS_MAX + 2}`);
    expect(status?.targetStatuses).toHaveLength(TARGETS_MAX);
    expect(status?.message).toHaveLength(MESSAGE_LENGTH_MAX);
    const [first] = status?.targetStatuses ?? [];
    expect(first?.message).toHaveLength(MESSAGE_LENGTH_MAX);
    const values = Object.values(first?.details ?? {});
    expect(values).toHaveLength(DETAILS_MAX);
    expect(Math.max(...values.map((value) => value.length))).toBe(256);
  });
});
