import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { instanceName } from '#agent/providers/naming.ts';

describe('instance names', () => {
  test('are the ones that earlier versions gave: others would make every machine again', () => {
    expect(instanceName('8b2d7a3e-0c5f-4f3b-9d55-2f0a5f3f6a11')).toBe('proxy-nvdvt7igbxcw46jw');
  });

  test('are valid and equal for equal uids only', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.uuid(), (a, b) => {
        expect(instanceName(a)).toMatch(/^proxy-[a-z2-7]{16}$/);
        expect(instanceName(a) === instanceName(b)).toBe(a === b);
      }),
    );
  });
});
