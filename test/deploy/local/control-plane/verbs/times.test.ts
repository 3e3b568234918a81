import { describe, expect, it } from 'vitest';
import { canonicalMicroTime, canonicalTime } from '#deploy/local/control-plane/api/verbs/times.ts';

describe('times of the server', () => {
  it.each([
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z'],
    ['2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00Z'],
    ['2026-01-01T00:00:00.987654Z', '2026-01-01T00:00:00Z'],
    ['2026-01-01T02:30:00+02:30', '2026-01-01T00:00:00Z'],
    ['2026-01-01', '2026-01-01'],
    ['2026-13-01T00:00:00Z', '2026-13-01T00:00:00Z'],
    ['soon', 'soon'],
  ])('turn %s into whole seconds of UTC', (text, expected) => {
    expect(canonicalTime(text)).toBe(expected);
  });

  it.each([
    ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00.000000Z'],
    ['2026-01-01T00:00:00.123Z', '2026-01-01T00:00:00.123000Z'],
    ['2026-01-01T00:00:00.1234567Z', '2026-01-01T00:00:00.123456Z'],
    ['2025-12-31T22:00:00.5-02:00', '2026-01-01T00:00:00.500000Z'],
    ['soon', 'soon'],
    ['2026-13-01T00:00:00Z', '2026-13-01T00:00:00Z'],
  ])('turn %s into microseconds of UTC where the field has them', (text, expected) => {
    expect(canonicalMicroTime(text)).toBe(expected);
  });
});
