import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { normalizeTarget } from '#shared/wire/target.ts';

describe('a target', () => {
  const cases: [string, string | undefined][] = [
    ['example.com', 'example.com'],
    ['EXAMPLE.com', 'example.com'],
    ['example.com.', 'example.com'],
    ['example.com:8443', 'example.com'],
    ['https://www.example.com/a?b#c', 'www.example.com'],
    ['http://user:secret@example.com:80/', 'example.com'],
    ['  example.com  ', 'example.com'],
    ['example.com/path', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['https://BÜCHER.example/', 'xn--bcher-kva.example'],
    ['192.0.2.1', '192.0.2.1'],
    ['[2001:DB8::1]:443', '[2001:db8::1]'],
    [`${'a'.repeat(63)}.example`, `${'a'.repeat(63)}.example`],
    ['', undefined],
    ['   ', undefined],
    ['http://', undefined],
    [':', undefined],
    ['/path', undefined],
    ['two words', undefined],
    [`${'a.'.repeat(126)}ab`, undefined],
  ];
  for (const [target, host] of cases) {
    it(`${JSON.stringify(target).slice(0, 40)} is ${host ?? 'refused'}`, () => {
      expect(normalizeTarget(target)).toBe(host);
    });
  }

  it('of 253 characters is taken', () => {
    const host = `${'a.'.repeat(126)}a`;
    expect(host).toHaveLength(253);
    expect(normalizeTarget(host)).toBe(host);
  });

  it('once normalised stays as it is, whatever it was', () => {
    fc.assert(
      fc.property(fc.oneof(fc.webUrl(), fc.domain(), fc.ipV6(), fc.string()), (target) => {
        const host = normalizeTarget(target);
        if (host === undefined) return;
        expect(normalizeTarget(host)).toBe(host);
        expect(host.length).toBeLessThanOrEqual(253);
        expect(host).toBe(host.toLowerCase());
      }),
    );
  });
});
