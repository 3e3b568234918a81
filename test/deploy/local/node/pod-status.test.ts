import { expect, it } from 'vitest';
import { nextBackoffMs } from '#deploy/local/node/backoff.ts';
import { type Pod, parsePod } from '#deploy/local/node/pod.ts';
import {
  type ContainerReport,
  type ContainerState,
  podPhase,
  podStatus,
  restarts,
} from '#deploy/local/node/pod-status.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const running: ContainerState = { kind: 'running', startedAtMs: NOW_MS };
const waiting: ContainerState = { kind: 'waiting', reason: 'ContainerCreating' };
const ended = (exitCode: number) =>
  ({
    kind: 'terminated',
    exitCode,
    reason: exitCode === 0 ? 'Completed' : 'Error',
    startedAtMs: NOW_MS,
    finishedAtMs: NOW_MS + 1000,
  }) as const;
const report = (state: ContainerState, more: Partial<ContainerReport> = {}): ContainerReport => ({
  name: 'squid',
  image: 'ubuntu/squid',
  state,
  restartCount: 0,
  ready: false,
  started: false,
  ...more,
});

function pod(restartPolicy: string): Pod {
  const parsed = parsePod({
    metadata: { name: 'p', namespace: 'default', uid: 'u' },
    spec: { restartPolicy, containers: [{ name: 'squid', image: 'ubuntu/squid' }] },
  });
  if (parsed === undefined) throw new Error('not a pod');
  return parsed;
}

it.each([
  ['Always', [waiting], 'Pending'],
  ['Always', [running], 'Running'],
  ['Always', [running, waiting], 'Pending'],
  ['Always', [ended(0)], 'Running'],
  ['OnFailure', [ended(0)], 'Succeeded'],
  ['OnFailure', [ended(1)], 'Running'],
  ['Never', [ended(0)], 'Succeeded'],
  ['Never', [ended(137)], 'Failed'],
  ['Never', [ended(0), ended(1)], 'Failed'],
  ['Never', [ended(0), running], 'Running'],
] as const)('under %s containers %j make a pod %s', (policy, states, phase) => {
  expect(
    podPhase(
      policy,
      states.map((state) => report(state)),
    ),
  ).toBe(phase);
});

it('keeps a pod Running while a container that has run waits for its next start', () => {
  const backingOff = report({ kind: 'waiting', reason: 'CrashLoopBackOff' }, { last: ended(1) });
  expect(podPhase('Always', [backingOff])).toBe('Running');
});

it.each([
  ['Always', 0, true],
  ['Always', 1, true],
  ['OnFailure', 0, false],
  ['OnFailure', 1, true],
  ['Never', 0, false],
  ['Never', 1, false],
] as const)('under %s an exit %i is followed by a new start: %s', (policy, code, again) => {
  expect(restarts(policy, code)).toBe(again);
});

function statusOf(container: ContainerReport, conditions: PodConditions = [], nowMs = NOW_MS) {
  return podStatus({
    pod: pod('Never'),
    hostIP: '127.0.0.1',
    ip: '127.42.0.2',
    startTime: '2026-01-01T12:00:00Z',
    containers: [container],
    conditions,
    nowMs,
  });
}
type PodConditions = Parameters<typeof podStatus>[0]['conditions'];
const conditionsOf = (status: { [key: string]: unknown }) => status['conditions'] as PodConditions;

it('is ready when every container is', () => {
  const status = statusOf(report(running, { ready: true, started: true }));
  expect(status).toMatchObject({ phase: 'Running', podIP: '127.42.0.2', hostIP: '127.0.0.1' });
  expect(conditionsOf(status).map(({ type, status }) => `${type}=${status}`)).toEqual([
    'PodScheduled=True',
    'Initialized=True',
    'ContainersReady=True',
    'Ready=True',
  ]);
});

it('names the containers that are not ready', () => {
  const ready = conditionsOf(statusOf(report(running))).find(({ type }) => type === 'Ready');
  expect(ready).toMatchObject({
    status: 'False',
    reason: 'ContainersNotReady',
    message: 'containers with unready status: [squid]',
  });
});

it('tells how a container ended', () => {
  expect(statusOf(report(ended(137)))).toMatchObject({
    phase: 'Failed',
    containerStatuses: [
      {
        state: {
          terminated: {
            exitCode: 137,
            reason: 'Error',
            startedAt: '2026-01-01T12:00:00Z',
            finishedAt: '2026-01-01T12:00:01Z',
          },
        },
      },
    ],
  });
});

it('keeps the time of a condition while its status stays', () => {
  const before = conditionsOf(statusOf(report(running)));
  const later = conditionsOf(statusOf(report(running, { ready: true }), before, NOW_MS + 60_000));
  const times = Object.fromEntries(later.map((one) => [one.type, one.lastTransitionTime]));
  expect(times['PodScheduled']).toBe('2026-01-01T12:00:00Z');
  expect(times['Ready']).toBe('2026-01-01T12:01:00Z');
});

it('waits ten seconds, then twice as long each time, at most five minutes', () => {
  const waits: number[] = [];
  for (let last = 0, i = 0; i < 7; i++) {
    last = nextBackoffMs(last, 1000);
    waits.push(last / 1000);
  }
  expect(waits).toEqual([10, 20, 40, 80, 160, 300, 300]);
  expect(nextBackoffMs(300_000, 600_000)).toBe(10_000);
});
