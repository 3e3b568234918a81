import { expect, test } from 'vitest';
import { formatId, parseId } from '#agent/providers/kvm/id.ts';

test.each([
  { host: 'hv1', name: 'proxy-abcdefghijklmnop' },
  { host: 'hv1.example.net', name: 'renamed_by.hand+1' },
])('reads back what it writes: $host, $name', (ref) => {
  expect(formatId(ref)).toBe(`hosts/${ref.host}/domains/${ref.name}`);
  expect(parseId(formatId(ref))).toEqual(ref);
});

test.each([
  '',
  'hosts/hv1/domains/',
  'hosts//domains/a',
  'hosts/hv1/domains/a/b',
  'hosts/HV1/domains/a',
  'hosts/hv1/domains/..',
  'hosts/hv1/domains/a b',
  'hosts/hv1/domains/a\n',
  'hosts/-/domains/a',
  'host/hv1/domain/a',
  'hosts/hv1/volumes/a',
])('refuses %j', (id) => {
  expect(parseId(id)).toBeUndefined();
});
