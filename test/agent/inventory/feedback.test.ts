import { expect, test } from 'vitest';
import { createFeedback } from '#agent/inventory/feedback.ts';
import type { SyncResponse } from '#shared/wire/sync.ts';

const answer = (parts: Partial<SyncResponse>): SyncResponse => ({
  acceptedSeq: 1,
  serverTime: 0,
  leases: {},
  reports: {},
  counters: {},
  ...parts,
});

test('leases and counters are those of the last answer, reports add up', () => {
  const feedback = createFeedback();
  expect([feedback.activeLeases('a'), feedback.lastAnswerMs]).toEqual([0, undefined]);
  feedback.apply(
    answer({
      leases: { a: 2, b: 1 },
      reports: { a: { rate_limited: 1, banned: 2, targets: ['x'] } },
      counters: { granted: 5 },
    }),
    10,
  );
  feedback.apply(
    answer({
      leases: { b: 4 },
      reports: { a: { rate_limited: 3, banned: 0, targets: [] } },
      counters: { granted: 9, no_match: 1 },
    }),
    20,
  );
  expect(feedback.activeLeases('a')).toBe(0);
  expect(feedback.activeLeases('b')).toBe(4);
  expect(feedback.activeLeasesTotal).toBe(4);
  expect(feedback.reports('a')).toEqual({ rateLimited: 4, banned: 2 });
  expect([...feedback.leaseRequests]).toEqual([
    ['granted', 9],
    ['no_match', 1],
  ]);
  expect(feedback.lastAnswerMs).toBe(20);
});

test('a partial answer changes what it names, and leaves the counters', () => {
  const feedback = createFeedback();
  feedback.apply(answer({ leases: { a: 2, b: 1 }, counters: { granted: 5 } }), 10);
  const reports = { b: { rate_limited: 1, banned: 0, targets: [] } };
  feedback.apply(answer({ partial: true, leases: { b: 0, c: 3 }, reports }), 20);
  expect(['a', 'b', 'c'].map(feedback.activeLeases)).toEqual([2, 0, 3]);
  expect(feedback.activeLeasesTotal).toBe(5);
  expect(feedback.reports('b')).toEqual({ rateLimited: 1, banned: 0 });
  expect([...feedback.leaseRequests]).toEqual([['granted', 5]]);
  expect(feedback.lastAnswerMs).toBe(20);
  feedback.apply(answer({ leases: { c: 1 } }), 30);
  expect(['a', 'b', 'c'].map(feedback.activeLeases)).toEqual([0, 0, 1]);
});

test('figures of removed proxies are forgotten one by one, but their reports stay in the total', () => {
  const feedback = createFeedback();
  const reports = { gone: { rate_limited: 1, banned: 1, targets: [] } };
  feedback.apply(answer({ reports, leases: { gone: 4 } }), 0);
  feedback.retain(() => false);
  expect([feedback.activeLeases('gone'), feedback.activeLeasesTotal]).toEqual([0, 0]);
  expect(feedback.reports('gone')).toEqual({ rateLimited: 0, banned: 0 });
  expect(feedback.reportsTotal).toEqual({ rateLimited: 1, banned: 1 });
});
