import fc from 'fast-check';
import { expect, test } from 'vitest';
import { backoffDelayMs, createBackoff } from '#agent/runtime/backoff.ts';

test('delays double up to the maximum, with at most half of each left to chance', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (failures, chance) => {
        const policy = { baseMs: 100, maxMs: 30_000 };
        const ceilingMs = Math.min(100 * 2 ** (failures - 1), 30_000);
        const delayMs = backoffDelayMs(policy, failures, () => chance);
        expect(delayMs).toBeGreaterThanOrEqual(ceilingMs / 2);
        expect(delayMs).toBeLessThanOrEqual(ceilingMs);
      },
    ),
  );
});

test('a success starts the delays anew', () => {
  const backoff = createBackoff({ baseMs: 10, maxMs: 1_000 }, () => 1 - Number.EPSILON);
  const delays = [backoff.nextMs(), backoff.nextMs(), backoff.nextMs()].map(Math.round);
  expect(delays).toEqual([10, 20, 40]);
  expect(backoff.failures).toBe(3);
  backoff.reset();
  expect(Math.round(backoff.nextMs())).toBe(10);
});
