/** Values as RFC 4506 and libvirt write them, byte for byte. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PROCEDURES, remoteError } from '#agent/providers/kvm/libvirt/procedures.ts';
import {
  fixedText,
  nothing,
  nullableText,
  size,
  text,
  uuid,
  type XdrType,
} from '#agent/providers/kvm/libvirt/xdr.ts';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const ID = '00010203-0405-0607-0809-0a0b0c0d0e0f';

const row = <T>(name: string, type: XdrType<T>, value: T, bytes: string) => ({
  name,
  check() {
    expect(hex(type.encode(value))).toBe(bytes);
    expect(type.decode(Buffer.from(bytes, 'hex'))).toEqual(value);
  },
});

describe('a value and its bytes', () => {
  it.each([
    row('text, padded to four bytes', text, 'abcde', '00000005 6162636465000000'.replace(' ', '')),
    row('empty text', text, '', '00000000'),
    row('text beyond ASCII', text, 'ü', '00000002c3bc0000'),
    row('text that is there', nullableText, 'a', '000000010000000161000000'),
    row('text that is not', nullableText, null, '00000000'),
    row('a size beyond 32 bits', size, 0x1_0000_0002, '0000000100000002'),
    row('a UUID', uuid, ID, '000102030405060708090a0b0c0d0e0f'),
    row('nothing', nothing, undefined, ''),
    row('text of fixed length', fixedText(3), 'ab', '000000610000006200000000'),
    row(
      'a call',
      PROCEDURES.domainDefineXmlFlags.arguments,
      { xml: '<a/>', flags: 1 },
      '000000043c612f3e00000001',
    ),
    row(
      'a domain that does not run',
      PROCEDURES.domainLookupByName.result,
      { domain: { name: 'vm', uuid: ID, id: -1 } },
      '00000002766d0000000102030405060708090a0b0c0d0e0fffffffff',
    ),
    row(
      'a list',
      PROCEDURES.poolListAllVolumes.result,
      { volumes: [{ pool: 'p', name: 'n', key: 'k' }], count: 1 },
      `00000001${'0000000170000000'}${'000000016e000000'}${'000000016b000000'}00000001`,
    ),
  ])('$name', ({ check }) => check());
});

it.each([
  ['a text that is cut off', text, '00000005616263'],
  ['a text longer than libvirt has any', text, '7fffffff'],
  ['padding that is not zero', text, '00000001610000ff'],
  ['bytes left over', text, '0000000000000000'],
  ['an option that is neither', nullableText, '00000002'],
])('%s is refused', (_name, type, bytes) => {
  expect(() => type.decode(Buffer.from(bytes, 'hex'))).toThrow(/./);
});

it('a UUID that is none is refused before it is sent', () => {
  expect(() => uuid.encode('vm-1')).toThrow('"vm-1" is no UUID');
});

it('a size that is not whole is refused before it is sent', () => {
  expect(() => size.encode(0.5)).toThrow(/./);
  expect(() => size.encode(-1)).toThrow(/./);
});

it('text that is not UTF-8 is shown as well as it can be', () => {
  expect(text.decode(Buffer.from('00000002ff610000', 'hex'))).toBe('\ufffda');
});

it('a truncated error is refused at every length', () => {
  const rest = { dom: null, str1: 'x', str2: null, str3: null, int1: 0, int2: 0, net: null };
  const bytes = remoteError.encode({ code: 42, domain: 10, message: 'no', level: 2, ...rest });
  for (let length = 0; length < bytes.length; length++) {
    expect(remoteError.validateXdr(bytes.subarray(0, length))).toBe(false);
  }
});

it('a volume comes out as it went in', () => {
  const volume = fc.record({ pool: fc.string(), name: fc.string(), key: fc.string() });
  fc.assert(
    fc.property(volume, fc.nat({ max: Number.MAX_SAFE_INTEGER }), (volume, length) => {
      const value = { volume, offset: 0, length, flags: 0 };
      const { arguments: type } = PROCEDURES.volumeUpload;
      expect(type.decode(type.encode(value))).toEqual(value);
    }),
  );
});

it('every procedure has a number of its own', () => {
  const numbers = Object.values(PROCEDURES).map(({ number }) => number);
  expect(new Set(numbers).size).toBe(numbers.length);
});
