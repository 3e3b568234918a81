import { describe, expect, test } from 'vitest';
import {
  generationOf,
  imageCopies,
  imageVolumes,
  isNameable,
  machineVolumeName,
  parseMachineVolume,
} from '#agent/providers/kvm/volume-names.ts';
import { request, SHA256 } from './block.ts';

const owner = {
  machine: request.name,
  uid: request.uid,
  installation: request.installation,
  generation: '0a1b2c3d',
};

describe('disks and seeds', () => {
  test.each([
    ['disk', '.qcow2'],
    ['seed', '.iso'],
  ] as const)('the name of a %s tells whose it is', (kind, ending) => {
    const name = machineVolumeName(owner, kind);
    expect(name.endsWith(ending)).toBe(true);
    expect(parseMachineVolume(name)).toEqual(owner);
    // File systems take no longer name of a file.
    expect(name.length).toBeLessThan(256);
  });

  test('another domain under the same name has other volumes', () => {
    const generation = generationOf('0A1B2C3D-0000-4000-8000-000000000000');
    expect(generation).toBe('0a1b2c3d');
    const next = { ...owner, generation: 'ffffffff' };
    expect(machineVolumeName(next, 'disk')).not.toBe(machineVolumeName(owner, 'disk'));
  });

  test.each([
    'debian.qcow2',
    'proxy-abcdefghijklmnop.qcow2',
    'proxy-abcdefghijklmnop.uid.installation.qcow2',
    'proxy-abcdefghijklmnop.uid.installation.0a1b2c3.qcow2',
    'proxy-abcdefghijklmnop.uid.installation.0a1b2c3d.img',
    'proxy-abcdefghijklmnop.u_d.installation.0a1b2c3d.qcow2',
    'a/b.uid.installation.0a1b2c3d.qcow2',
    '.uid.installation.0a1b2c3d.qcow2',
    imageVolumes.data(imageVolumes.prefix({ name: 'debian', sha256: SHA256 }), { attempt: 'aa' }),
  ])('%s is none of them', (name) => {
    expect(parseMachineVolume(name)).toBeUndefined();
  });

  test.each([
    [request.name, request, true],
    [request.name, { uid: 'uid.1', installation: 'here' }, false],
    [request.name, { uid: '', installation: 'here' }, false],
    [request.name, { uid: 'uid', installation: '../here' }, false],
    ['a.b', request, false],
    ['a/b', request, false],
    ['', request, false],
  ])('whether %s and its mark can stand in a name', (machine, mark, able) => {
    expect(isNameable(machine, mark)).toBe(able);
  });
});

describe('images', () => {
  const prefix = imageVolumes.prefix({ name: 'debian-13', sha256: SHA256 });

  test('another checksum is another image', () => {
    const other = imageVolumes.prefix({ name: 'debian-13', sha256: 'cd'.repeat(32) });
    expect(other).not.toBe(prefix);
    expect(imageCopies(other, [imageVolumes.data(prefix, { attempt: 'aa' })])).toEqual([]);
  });

  test('a copy counts when both of its volumes are there', () => {
    const names = [
      imageVolumes.data(prefix, { attempt: 'bb' }),
      imageVolumes.complete(prefix, { attempt: 'bb' }),
      imageVolumes.data(prefix, { attempt: 'aa' }),
      imageVolumes.complete(prefix, { attempt: 'cc' }),
      `${prefix}zz.img`,
      'something.img',
    ];
    expect(imageCopies(prefix, names)).toEqual([
      { attempt: 'aa', hasData: true, isComplete: false },
      { attempt: 'bb', hasData: true, isComplete: true },
      { attempt: 'cc', hasData: false, isComplete: false },
    ]);
  });
});
