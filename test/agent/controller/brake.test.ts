/** When most machines fail at once, those that nobody asked to be replaced are left alone. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Brake, type BrakeObserver, createBrake } from '#agent/controller/brake.ts';

const PROVIDER = 'p';
const keys = (count: number, from = 0) =>
  Array.from({ length: count }, (_, nth) => `crawl/${from + nth}`);

function recording() {
  const told: string[] = [];
  const observer: BrakeObserver = {
    braked: (provider, unhealthy, machines) =>
      told.push(`${provider} braked ${unhealthy}/${machines}`),
    released: (provider, why, heldMs) => told.push(`${provider} ${why} after ${heldMs}`),
    held: (provider, replacements) => told.push(`${provider} holds ${replacements}`),
  };
  return { told, brake: createBrake(observer) };
}

function fleetOf(brake: Brake, count: number, nowMs = 0): void {
  for (const key of keys(count)) brake.well(key, PROVIDER, nowMs);
}

const turn = (brake: Brake, which: string[], nowMs: number, sinceMs = 0) => {
  for (const key of which) brake.sick(key, PROVIDER, { sinceMs, nowMs });
};
const isHeld = (brake: Brake, nowMs: number, key = 'crawl/0') =>
  brake.hold(key, PROVIDER, nowMs) !== undefined;

describe('replacements at a provider', () => {
  test.each([
    ['12 of 20', 20, 12, true],
    ['half of 20', 20, 10, false],
    ['11 of 20', 20, 11, true],
    ['4 of 6', 6, 4, true],
    ['4 of 8', 8, 4, false],
    ['3 of 4', 4, 3, false],
    ['all of 4', 4, 4, true],
    ['all of 3', 3, 3, false],
    ['the one', 1, 1, false],
  ])('are held when %s machines turn unhealthy: %#', (_what, fleet, sick, held) => {
    const brake = createBrake();
    fleetOf(brake, fleet);
    turn(brake, keys(sick), 1000);
    expect(isHeld(brake, 2000)).toBe(held);
  });

  test('go on when machines fail one after the other, however many in the end', () => {
    const brake = createBrake();
    fleetOf(brake, 20);
    for (const [nth, key] of keys(18).entries()) {
      turn(brake, [key], nth * 6_000);
      expect(isHeld(brake, nth * 6_000, key)).toBe(false);
    }
  });

  test('are released when no more than half of the machines are unhealthy', () => {
    const { brake, told } = recording();
    fleetOf(brake, 20);
    turn(brake, keys(12), 1000);
    expect(brake.hold('crawl/0', PROVIDER, 2000)).toEqual({
      isNew: true,
      message: expect.stringMatching(/11 of 20 instances at provider "p" turned unhealthy/),
    });
    expect(brake.hold('crawl/0', PROVIDER, 12_000)?.isNew).toBe(false);
    brake.well('crawl/5', PROVIDER, 30_000);
    expect(isHeld(brake, 30_000)).toBe(true);
    brake.well('crawl/6', PROVIDER, 31_000);
    expect(isHeld(brake, 31_000)).toBe(false);
    expect(told).toEqual(['p braked 11/20', 'p holds 1', 'p holds 0', 'p recovered after 30000']);
  });

  test('are released after ten minutes, and not held again for the same failure', () => {
    const { brake, told } = recording();
    fleetOf(brake, 10);
    turn(brake, keys(10), 0);
    expect(isHeld(brake, 599_999)).toBe(true);
    expect(isHeld(brake, 600_000)).toBe(false);
    turn(brake, keys(10), 600_001);
    expect(isHeld(brake, 600_001)).toBe(false);
    expect(told.at(-1)).toBe('p timed-out after 600000');
  });

  test('count machines that were replaced in the meantime as failed until they are well', () => {
    const brake = createBrake();
    fleetOf(brake, 10);
    for (const [nth, key] of keys(6).entries()) {
      turn(brake, [key], nth * 1000);
      brake.idle(key);
    }
    expect(isHeld(brake, 6000, 'crawl/5')).toBe(true);
  });

  test('are not held for machines that their users replace or delete', () => {
    const brake = createBrake();
    fleetOf(brake, 10);
    for (const key of keys(3)) brake.idle(key);
    for (const key of keys(3, 3)) brake.forget(key, 0);
    turn(brake, keys(2, 6), 0);
    expect(isHeld(brake, 0, 'crawl/6')).toBe(false);
  });

  test('are released by the deletion of those that are unhealthy', () => {
    const { brake, told } = recording();
    fleetOf(brake, 6);
    turn(brake, keys(4), 0);
    for (const key of keys(4)) expect(isHeld(brake, 0, key)).toBe(true);
    brake.forget('crawl/0', 1000);
    expect(isHeld(brake, 1000, 'crawl/1')).toBe(true);
    brake.forget('crawl/1', 2000);
    expect(isHeld(brake, 2000, 'crawl/2')).toBe(false);
    expect(told).toContain('p recovered after 2000');
  });

  test('are held by a new leader amid a failure, but not for what has long been broken', () => {
    const recent = createBrake();
    turn(recent, keys(8), 0, 120_000);
    expect(isHeld(recent, 0)).toBe(true);
    const old = createBrake();
    turn(old, keys(8), 0, 3_600_000);
    expect(isHeld(old, 0)).toBe(false);
  });

  test('of another provider are not concerned', () => {
    const brake = createBrake();
    fleetOf(brake, 5);
    brake.well('crawl/x', 'other', 0);
    turn(brake, keys(5), 0);
    expect(brake.hold('crawl/x', 'other', 0)).toBeUndefined();
  });

  test('are never held in a pool of three, whatever happens to it', () => {
    const event = fc.record({
      key: fc.constantFrom(...keys(3)),
      kind: fc.constantFrom('well', 'sick', 'idle', 'forget'),
      afterMs: fc.nat(90_000),
    });
    fc.assert(
      fc.property(fc.array(event), (events) => {
        const brake = createBrake();
        let nowMs = 0;
        for (const { key, kind, afterMs } of events) {
          nowMs += afterMs;
          if (kind === 'well') brake.well(key, PROVIDER, nowMs);
          else if (kind === 'sick') brake.sick(key, PROVIDER, { sinceMs: 0, nowMs });
          else if (kind === 'idle') brake.idle(key);
          else brake.forget(key, nowMs);
          expect(brake.hold(key, PROVIDER, nowMs)).toBeUndefined();
        }
      }),
    );
  });
});
