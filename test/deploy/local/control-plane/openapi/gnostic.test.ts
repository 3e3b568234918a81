import { describe, expect, it } from 'vitest';
import { encodeOpenApiV2 } from '#deploy/local/control-plane/openapi/gnostic.ts';
import { MessageWriter } from '#deploy/local/control-plane/openapi/protobuf.ts';
import { openApiV2 } from '#deploy/local/control-plane/openapi/v2.ts';
import { crds, pods, things } from './resources.ts';

const decoder = new TextDecoder('utf-8', { fatal: true });

interface Field {
  readonly number: number;
  readonly value: Uint8Array | bigint;
}

/** Splits a message into its fields; throws where the bytes end too early. */
function readFields(bytes: Uint8Array): Field[] {
  const fields: Field[] = [];
  let offset = 0;
  const varint = (): bigint => {
    let result = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[offset++];
      if (byte === undefined) throw new Error('message ends inside a varint');
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
  };
  const take = (length: number): Uint8Array => {
    if (offset + length > bytes.length) throw new Error('message ends inside a field');
    offset += length;
    return bytes.subarray(offset - length, offset);
  };
  while (offset < bytes.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    if ((tag & 7n) === 0n) fields.push({ number, value: varint() });
    else if ((tag & 7n) === 1n) fields.push({ number, value: take(8) });
    else if ((tag & 7n) === 2n) fields.push({ number, value: take(Number(varint())) });
    else throw new Error(`wire type ${tag & 7n}`);
  }
  return fields;
}

function messages(bytes: Uint8Array | undefined, number: number): Uint8Array[] {
  return readFields(bytes ?? new Uint8Array()).flatMap((field) =>
    field.number === number && field.value instanceof Uint8Array ? [field.value] : [],
  );
}

function text(bytes: Uint8Array | undefined, number: number): string {
  const [value] = messages(bytes, number);
  return value === undefined ? '' : decoder.decode(value);
}

/** The value of the entry of a Named… list with this name. */
function entry(entries: readonly Uint8Array[], name: string): Uint8Array | undefined {
  const found = entries.find((candidate) => text(candidate, 1) === name);
  return messages(found, 2)[0];
}

describe('the protobuf form of OpenAPI v2', () => {
  it('has exactly these bytes for a small document', () => {
    const bytes = encodeOpenApiV2({
      swagger: '2.0',
      info: { title: 'T', version: 'v' },
      definitions: {
        A: { type: 'object', required: ['b'], minProperties: 1, 'x-k': [1], maximum: 1 },
      },
    });
    const expected = [
      '0a03322e30', // 1 swagger: "2.0"
      '12060a0154120176', // 2 info: 1 title "T", 2 version "v"
      '4a320a30', // 9 definitions: 1 additional_properties
      '0a0141122b', // 1 name "A", 2 value, a Schema
      'b201080a066f626a656374', // 22 type: 1 value "object"
      '9a010162', // 19 required: "b"
      '900101', // 18 min_properties: 1
      'fa010d0a03782d6b120612045b315d0a', // 31 extension: 1 name "x-k", 2 value: 2 yaml "[1]\n"
      '39000000000000f03f', // 7 maximum: 1.0
    ];
    expect(Buffer.from(bytes).toString('hex')).toBe(expected.join(''));
  });

  it('holds every definition and path of the document, where gnostic looks for them', () => {
    const { document, protobuf } = openApiV2([pods, crds, things]);
    const bytes = protobuf();
    const definitions = messages(messages(bytes, 9)[0], 1);
    expect(definitions.map((definition) => text(definition, 1))).toEqual(
      Object.keys(document.definitions ?? {}),
    );
    const thing = entry(definitions, 'com.example.crawl.v1alpha1.Thing');
    expect(text(thing, 4)).toBe('A thing.');
    const spec = entry(messages(messages(thing, 25)[0], 1), 'spec');
    const size = entry(messages(messages(spec, 25)[0], 1), 'size');
    expect(text(messages(size, 22)[0], 1)).toBe('integer');
    const extension = messages(thing, 31).map((item) => text(messages(item, 2)[0], 2));
    expect(extension.map((yaml) => JSON.parse(yaml))).toEqual([
      [{ group: 'crawl.example.com', kind: 'Thing', version: 'v1alpha1' }],
    ]);
    const paths = messages(messages(bytes, 8)[0], 2);
    const path = entry(paths, '/api/v1/namespaces/{namespace}/pods/{name}');
    const parameters = messages(messages(path, 8)[0], 8).map((item) => {
      const parameter = messages(item, 1)[0];
      const query = messages(messages(parameter, 2)[0], 3)[0];
      return text(query, 4) || text(messages(parameter, 1)[0], 2);
    });
    expect(parameters).toEqual(['body', 'dryRun', 'fieldManager', 'fieldValidation', 'force']);
  });

  it('writes varints of every size, negative ones as 64 bits', () => {
    const bytes = (value: number) => {
      const writer = new MessageWriter();
      writer.int64(1, value);
      return Buffer.from(writer.finish()).toString('hex');
    };
    expect(bytes(0)).toBe('');
    expect(bytes(127)).toBe('087f');
    expect(bytes(128)).toBe('088001');
    expect(bytes(2 ** 31)).toBe('088080808008');
    expect(bytes(-1)).toBe('08ffffffffffffffffff01');
  });
});
