import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { proxiesOfSecret } from '#agent/controller/cloud-init.ts';
import { pollDelayMs } from '#agent/controller/intervals.ts';
import { specHash } from '#agent/controller/spec-hash.ts';
import { managed } from './harness.ts';

describe('spec hash', () => {
  const spec = (fields: object = {}) => managed(fields).spec;

  test('is the one that earlier versions wrote: another would replace every machine', () => {
    expect(specHash(spec(), undefined)).toBe('62748e6ac4adc4d18a6734223be3f8e3');
    expect(specHash(spec({ placement: { zone: 'a', image: 'i' } }), '#cloud-config')).toBe(
      'f3c5c3a2f5e7108980fb17ed714674d4',
    );
  });

  test('takes an empty placement for none', () => {
    expect(specHash(spec({ placement: {} }), undefined)).toBe(specHash(spec(), undefined));
  });

  test('tells apart what needs another machine', () => {
    const variants = [
      specHash(spec(), undefined),
      specHash(spec(), ''),
      specHash(spec(), 'x'),
      specHash(spec({ port: 1 }), undefined),
      specHash(spec({ placement: { region: 'x' } }), undefined),
      specHash(spec({ placement: { zone: 'x' } }), undefined),
      specHash(spec({ placement: { machineType: 'x' } }), undefined),
      specHash(spec({ placement: { image: 'x' } }), undefined),
    ];
    expect(new Set(variants).size).toBe(variants.length);
  });
});

describe('poll delay', () => {
  const range = { minMs: 1000, maxMs: 10_000 };

  test.each([
    [0, 1000],
    [1000, 1000],
    [4000, 2000],
    [20_000, 10_000],
    [3_600_000, 10_000],
    [-5000, 1000],
  ])('after %i ms is %i ms', (waitedMs, delayMs) => {
    expect(pollDelayMs(range, 0, waitedMs)).toBe(delayMs);
  });

  test('is never late by more than half of the time that it took', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600_000 }), (readyMs) => {
        let nowMs = 0;
        while (nowMs < readyMs) nowMs += pollDelayMs(range, 0, nowMs);
        expect(nowMs - readyMs).toBeLessThanOrEqual(Math.max(range.minMs, readyMs / 2));
      }),
    );
  });
});

test('a Secret concerns the proxies of its namespace that name it', () => {
  const cloudInit = { secretRef: { name: 's' } };
  const proxies = [
    managed({ cloudInit }, { name: 'a' }),
    managed({ cloudInit }, { name: 'b', namespace: 'elsewhere' }),
    managed({ cloudInit: { secretRef: { name: 't' } } }, { name: 'c' }),
    managed({ cloudInit: { inline: 's' } }, { name: 'd' }),
    managed({}, { name: 'e' }),
  ];
  expect(proxiesOfSecret('crawl/s', proxies)).toEqual(['crawl/a']);
});
