import { describe, expect, it } from 'vitest';
import { ageOf, humanDuration } from '#deploy/local/control-plane/printing/human-duration.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

describe('ages', () => {
  // The table of k8s.io/apimachinery/pkg/util/duration.
  it.each<[number, string]>([
    [-2 * SECOND, '<invalid>'],
    [-1 * SECOND, '0s'],
    [0, '0s'],
    [999, '0s'],
    [SECOND, '1s'],
    [2 * MINUTE - SECOND, '119s'],
    [2 * MINUTE, '2m'],
    [2 * MINUTE + SECOND, '2m1s'],
    [10 * MINUTE - SECOND, '9m59s'],
    [10 * MINUTE + 30 * SECOND, '10m'],
    [3 * HOUR - MINUTE, '179m'],
    [3 * HOUR, '3h'],
    [3 * HOUR + 5 * MINUTE, '3h5m'],
    [8 * HOUR + 5 * MINUTE, '8h'],
    [2 * DAY - SECOND, '47h'],
    [2 * DAY, '2d'],
    [2 * DAY + HOUR, '2d1h'],
    [8 * DAY + HOUR, '8d'],
    [2 * 365 * DAY - HOUR, '729d'],
    [2 * 365 * DAY, '2y'],
    [3 * 365 * DAY + 5 * DAY, '3y5d'],
    [9 * 365 * DAY + 5 * DAY, '9y'],
  ])('of %d ms read %s', (durationMs, text) => {
    expect(humanDuration(durationMs)).toBe(text);
  });

  it.each<[unknown, string]>([
    [undefined, '<unknown>'],
    [null, '<unknown>'],
    ['', '<unknown>'],
    ['yesterday', '<invalid>'],
    [5, '<invalid>'],
    ['2026-01-01T00:00:00Z', '60s'],
  ])('since %j read %s', (timestamp, text) => {
    expect(ageOf(timestamp, Date.UTC(2026, 0, 1, 0, 1))).toBe(text);
  });
});
