import { expect, test } from 'vitest';
import { choose } from '#agent/providers/kvm/placement.ts';
import { configWith, SHA256 } from './block.ts';

const host = (name: string) => ({ name, address: '10.0.0.1', user: 'prov' });
const image = (name: string) => ({ name, url: 'https://example.net/a', sha256: SHA256 });
const type = (name: string) => ({ name, cpus: 1, memoryMiB: 256, diskGiB: 1 });
const one = configWith().kvm;
const two = configWith({
  hosts: [host('hv1'), host('hv2')],
  images: [image('a'), image('b')],
  machineTypes: [type('small'), type('large')],
}).kvm;

test('what is named is taken', () => {
  const placement = { region: 'ignored', zone: 'hv2', image: 'b', machineType: 'large' };
  expect(choose(placement, two)).toMatchObject({
    host: { name: 'hv2' },
    image: { name: 'b' },
    machineType: { name: 'large' },
  });
});

test('what is not named is taken where there is one', () => {
  expect(choose({}, one)).toMatchObject({
    host: { name: 'hv1' },
    image: { name: 'debian-13' },
    machineType: { name: 'small' },
  });
});

test.each([
  [{}, 'placement.zone is needed: hosts of this provider has hv1, hv2'],
  [{ zone: 'hv1' }, 'placement.image is needed: images of this provider has a, b'],
  [
    { zone: 'hv1', image: 'a' },
    'placement.machineType is needed: machineTypes of this provider has small, large',
  ],
  [{ zone: 'hv3' }, 'placement.zone "hv3" is not in hosts of this provider (known: hv1, hv2)'],
  [
    { zone: 'hv1', image: 'c' },
    'placement.image "c" is not in images of this provider (known: a, b)',
  ],
])('%j cannot be satisfied', (placement, problem) => {
  expect(choose(placement, two)).toEqual({ problem });
});
