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

test('reports of removed proxies are forgotten one by one but stay in the total', () => {
  const feedback = createFeedback();
  const reports = { gone: { rate_limited: 1, banned: 1, targets: [] } };
  feedback.apply(answer({ reports }), 0);
  feedback.retain(() => false);
  expect(feedback.reports('gone')).toEqual({ rateLimited: 0, banned: 0 });
  expect(feedback.reportsTotal).toEqual({ rateLimited: 1, banned: 1 });
});
