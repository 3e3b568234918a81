/** What a guest reads of its seed, by a reader of ISO 9660 that is not ours where there is one. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { buildIso } from '#agent/providers/kvm/iso9660.ts';
import { buildSeed } from '#agent/providers/kvm/seed.ts';

const UUID = '0a1b2c3d-1111-4222-8333-445566778899';
const SECTOR = 2048;
const spec = { uuid: UUID, hostname: 'proxy-abc', userData: '#!/bin/sh\necho hello\n' };
const ISOINFO = '/usr/bin/isoinfo';
const needsIsoinfo = existsSync(ISOINFO) ? undefined : 'needs isoinfo';

/** Files of the Joliet tree, read as the specification has it. */
function filesOf(iso: Buffer): Map<string, Buffer> {
  const volume = iso.subarray(17 * SECTOR, 18 * SECTOR);
  expect(volume.toString('latin1', 1, 6)).toBe('CD001');
  expect(volume.toString('latin1', 88, 91)).toBe('%/E');
  const root = volume.subarray(156, 190);
  const folder = iso.subarray(
    root.readUInt32LE(2) * SECTOR,
    root.readUInt32LE(2) * SECTOR + root.readUInt32LE(10),
  );
  const files = new Map<string, Buffer>();
  for (let at = 0; (folder[at] ?? 0) > 0; at += folder[at] ?? 0) {
    const record = folder.subarray(at, at + (folder[at] ?? 0));
    // Both byte orders say the same.
    expect(record.readUInt32BE(6)).toBe(record.readUInt32LE(2));
    expect(record.readUInt32BE(14)).toBe(record.readUInt32LE(10));
    if (((record[25] ?? 0) & 2) !== 0) continue;
    const name = Buffer.from(record.subarray(33, 33 + (record[32] ?? 0)))
      .swap16()
      .toString('utf16le');
    const start = record.readUInt32LE(2) * SECTOR;
    files.set(name.replace(/;1$/, ''), iso.subarray(start, start + record.readUInt32LE(10)));
  }
  return files;
}

describe('a seed', () => {
  test('holds what NoCloud asks for', () => {
    const files = filesOf(buildSeed(spec));
    expect([...files.keys()]).toEqual(['meta-data', 'network-config', 'user-data']);
    expect(files.get('user-data')?.toString()).toBe(spec.userData);
    expect(parse(files.get('meta-data')?.toString() ?? '')).toEqual({
      'instance-id': UUID,
      'local-hostname': 'proxy-abc',
    });
    expect(parse(files.get('network-config')?.toString() ?? '')).toEqual({
      version: 2,
      ethernets: {
        primary: {
          match: { macaddress: '52:54:00:77:88:99' },
          dhcp4: true,
          'dhcp-identifier': 'mac',
        },
      },
    });
  });

  test('is found by its label in either tree', () => {
    const iso = buildSeed(spec);
    expect(iso.toString('latin1', 16 * SECTOR + 40, 16 * SECTOR + 72)).toBe('cidata'.padEnd(32));
    const joliet = Buffer.from(iso.subarray(17 * SECTOR + 40, 17 * SECTOR + 72)).swap16();
    expect(joliet.toString('utf16le')).toBe('cidata'.padEnd(16));
  });

  test('is the same for the same machine, and another for another', () => {
    expect(buildSeed(spec)).toEqual(buildSeed({ ...spec }));
    expect(buildSeed(spec)).not.toEqual(buildSeed({ ...spec, uuid: UUID.replace('0a', '0b') }));
  });

  test('without user-data asks for nothing', () => {
    const files = filesOf(buildSeed({ ...spec, userData: undefined }));
    expect(parse(files.get('user-data')?.toString() ?? '')).toEqual({});
  });

  test.each([0, 1, 2047, 2048, 2049, 1_000_000])('holds %i bytes of user-data whole', (bytes) => {
    const userData = 'ä'.repeat(bytes / 2) + 'x'.repeat(bytes % 2);
    const iso = buildSeed({ ...spec, userData });
    expect(filesOf(iso).get('user-data')?.toString()).toBe(userData);
    expect(iso.length % SECTOR).toBe(0);
    expect(iso.readUInt32LE(16 * SECTOR + 80) * SECTOR).toBe(iso.length);
  });

  test.skipIf(needsIsoinfo !== undefined)(
    `is read by the tools of others${needsIsoinfo === undefined ? '' : ` (${needsIsoinfo})`}`,
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'seed-'));
      const path = join(folder, 'seed.iso');
      try {
        writeFileSync(path, buildSeed(spec));
        const isoinfo = (...args: string[]) =>
          execFileSync(ISOINFO, ['-i', path, ...args], { encoding: 'utf8' });
        expect(isoinfo('-d')).toContain('Volume id: cidata');
        // With the version, which systems leave out when they mount it.
        expect(isoinfo('-J', '-f').trim().split('\n')).toEqual([
          '/meta-data;1',
          '/network-config;1',
          '/user-data;1',
        ]);
        expect(isoinfo('-J', '-x', '/user-data;1')).toBe(spec.userData);
        // The plain tree is whole, too.
        expect(isoinfo('-x', '/FILE2.;1')).toBe(spec.userData);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});

describe('an image', () => {
  const file = (name: string) => ({ name, content: Buffer.from('a') });

  test.each([
    ['a path', 'a/b'],
    ['no name', ''],
    ['letters that it cannot have', 'ä'],
    ['a name of 65 characters', 'a'.repeat(65)],
  ])('refuses %s', (_what, name) => {
    expect(() => buildIso('cidata', [file(name)])).toThrow(RangeError);
  });

  test('refuses more files than its one folder has room for', () => {
    const many = Array.from({ length: 31 }, (_, at) => file(`f${at}`));
    expect(() => buildIso('cidata', many)).toThrow(RangeError);
    const long = Array.from({ length: 20 }, (_, at) => file(`${at}`.padEnd(64, 'x')));
    expect(() => buildIso('cidata', long)).toThrow(RangeError);
  });

  test('refuses a label that is none', () => {
    expect(() => buildIso('seventeen-letters', [])).toThrow(RangeError);
  });
});
