import { describe, expect, it } from 'vitest';
import { decodeProtobuf, ProtobufError } from '#deploy/local/control-plane/http/protobuf/decode.ts';

/** As `kubectl create secret generic s --from-literal=a=b` sends it. */
const SECRET = envelope('v1', 'Secret', [
  ...field(1, [...field(1, 's'), ...field(2, ''), ...field(3, 'default'), ...field(8, [])]),
  ...field(2, [...field(1, 'a'), ...field(2, 'b')]),
  ...field(3, 'Opaque'),
]);

function field(number: number, value: string | readonly number[]): number[] {
  const bytes = typeof value === 'string' ? [...Buffer.from(value)] : value;
  return [number * 8 + 2, ...varint(bytes.length), ...bytes];
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

function envelope(apiVersion: string, kind: string, raw: readonly number[]): Uint8Array {
  const type = [...field(1, apiVersion), ...field(2, kind)];
  const unknown = [...field(1, type), ...field(2, raw), ...field(3, ''), ...field(4, '')];
  return Uint8Array.from([...Buffer.from('k8s\0'), ...unknown]);
}

function attempt(bytes: Uint8Array): unknown {
  try {
    return decodeProtobuf(bytes);
  } catch (error) {
    if (error instanceof ProtobufError) return error;
    throw error;
  }
}

describe('protobuf of kubectl', () => {
  it('is decoded to the object it stands for, without empty values', () => {
    expect(decodeProtobuf(SECRET)).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's', namespace: 'default' },
      data: { a: 'Yg==' },
      type: 'Opaque',
    });
  });

  it('keeps empty entries of lists: the core group is one', () => {
    const rule = [...field(1, 'get'), ...field(2, ''), ...field(3, 'pods')];
    const role = envelope('rbac.authorization.k8s.io/v1', 'Role', field(2, rule));
    expect(decodeProtobuf(role)).toMatchObject({
      rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }],
    });
  });

  it('reads numbers and booleans', () => {
    const options = envelope('v1', 'DeleteOptions', [0x08, 0x00, 0x18, 0x01]);
    expect(decodeProtobuf(options)).toMatchObject({
      gracePeriodSeconds: 0,
      orphanDependents: true,
    });
  });

  it('reads a list of any length in time that grows with it', () => {
    const count = 300_000;
    const dryRun = new Array<number[]>(count).fill([0x2a, 0x00]).flat();
    const decoded = decodeProtobuf(envelope('v1', 'DeleteOptions', dryRun));
    expect(decoded?.['dryRun']).toHaveLength(count);
  }, 5_000);

  it('passes over fields that it does not know, of every wire type', () => {
    const unknown = [0xf8, 0x07, 0x01, 0xf9, 0x07, ...new Array<number>(8).fill(0)];
    const fixed = [0xfd, 0x07, 0, 0, 0, 0];
    const secret = envelope('v1', 'Secret', [...unknown, ...fixed, ...field(3, 'Opaque')]);
    expect(decodeProtobuf(secret)).toEqual({ apiVersion: 'v1', kind: 'Secret', type: 'Opaque' });
  });

  it('is not taken for other kinds', () => {
    expect(decodeProtobuf(envelope('v1', 'Pod', []))).toBeUndefined();
  });

  it('is refused or incomplete when it ends early, and never crashes', () => {
    const whole = decodeProtobuf(SECRET);
    // The last four bytes are two empty fields of the envelope.
    for (let length = 0; length < SECRET.length - 4; length++) {
      const decoded = attempt(SECRET.subarray(0, length));
      expect(decoded instanceof ProtobufError ? undefined : decoded).not.toEqual(whole);
    }
  });

  it.each([
    ['another format', Buffer.from('{"kind":"Secret"}')],
    ['a number without end', Buffer.from([...Buffer.from('k8s\0'), ...new Array(12).fill(0xff)])],
    ['a group', Buffer.from([...Buffer.from('k8s\0'), 0x0b])],
  ])('is refused for %s', (_case, bytes) => {
    expect(() => decodeProtobuf(bytes)).toThrow(ProtobufError);
  });
});
