import { expect, it } from 'vitest';
import { mean, median, percentile } from './statistics.ts';

it.each([
  [[3], 3],
  [[9, 1, 5], 5],
  [[4, 1, 2, 3], 2.5],
])('the median of %j is %d', (values, expected) => {
  expect(median(values)).toBe(expected);
});

it.each([
  [0.5, 50],
  [0.99, 99],
  [1, 100],
  [0, 1],
])('the percentile %d of 1 to 100 is %d', (share, expected) => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index);
  expect(percentile(values, share)).toBe(expected);
});

it('makes nothing of nothing', () => {
  expect(() => median([])).toThrow(RangeError);
  expect(() => percentile([], 0.5)).toThrow(RangeError);
});

it('takes the mean', () => {
  expect(mean([1, 2, 6])).toBe(3);
});
