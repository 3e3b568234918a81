import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseProvidersConfig } from '#agent/providers/config.ts';
import { configWith, SHA256 } from './kvm/block.ts';

const GUIDE = resolve(import.meta.dirname, '../../../docs/kvm-provider.md');

const host = { name: 'hv1', address: '10.0.0.2', user: 'egress' };
const image = { name: 'debian-13', url: 'https://example.net/a.qcow2', sha256: SHA256 };
const machineType = { name: 'small', cpus: 1, memoryMiB: 1024, diskGiB: 10 };
const block = {
  sshSecret: { name: 'kvm-ssh', namespace: 'crawl' },
  hosts: [host],
  images: [image],
  machineTypes: [machineType],
};

function problemsOf(kvm: object): string[] {
  const providers = [{ name: 'home', type: 'kvm', kvm }];
  const parsed = parseProvidersConfig(JSON.stringify({ providers }));
  return parsed.ok ? [] : parsed.problems;
}

describe('a good block', () => {
  test('gets the documented defaults', () => {
    const config = configWith({ hosts: [host] });
    expect(config.creationsPerMinute).toBe(30);
    expect(config.kvm.hosts).toEqual([
      {
        ...host,
        port: 22,
        pool: 'default',
        network: 'default',
        virtType: 'kvm',
        socket: '/run/libvirt/libvirt-sock',
      },
    ]);
    expect(config.kvm.images).toMatchObject([{ firmware: 'efi' }]);
  });

  test('may write the checksum in capital letters', () => {
    const { kvm } = configWith({ images: [{ ...image, sha256: SHA256.toUpperCase() }] });
    expect(kvm.images[0]?.sha256).toBe(SHA256);
  });

  test('is the one of the guide', () => {
    const yaml = /```yaml\n(providers:[\s\S]*?)```/.exec(readFileSync(join(GUIDE), 'utf8'))?.[1];
    expect(parseProvidersConfig(yaml ?? '')).toMatchObject({
      ok: true,
      providers: [{ name: 'kvm-home', type: 'kvm' }],
    });
  });
});

describe('a faulty block', () => {
  test.each<[object, string]>([
    [{ ...block, colour: 'red' }, 'providers[0].kvm.colour: unknown key'],
    [{ ...block, sshSecret: undefined }, 'providers[0].kvm.sshSecret: is required'],
    [{ ...block, hosts: [] }, 'providers[0].kvm.hosts: '],
    [
      { ...block, hosts: [{ ...host, name: 'a/b' }] },
      'providers[0].kvm.hosts[0].name: must be lower-case letters',
    ],
    [
      { ...block, hosts: [{ ...host, address: 'hv1:22' }] },
      'providers[0].kvm.hosts[0].address: must be a host name or an IP address',
    ],
    [
      { ...block, hosts: [{ ...host, user: '-oProxyCommand=x' }] },
      'providers[0].kvm.hosts[0].user: must be a user name',
    ],
    [{ ...block, hosts: [{ ...host, port: 0 }] }, 'providers[0].kvm.hosts[0].port: '],
    [
      { ...block, hosts: [{ ...host, socket: 'libvirt-sock' }] },
      'providers[0].kvm.hosts[0].socket: must be an absolute path',
    ],
    [
      { ...block, hosts: [{ ...host, pool: "a'b" }] },
      'providers[0].kvm.hosts[0].pool: must be letters',
    ],
    [
      { ...block, hosts: [host, host] },
      'providers[0].kvm.hosts[1].name: "hv1" is the name of item 0 already',
    ],
    [
      { ...block, images: [{ ...image, url: 'http://example.net/a.qcow2' }] },
      'providers[0].kvm.images[0].url: must be an https:// address',
    ],
    [
      { ...block, images: [{ ...image, url: 'https://me:secret@example.net/a' }] },
      'providers[0].kvm.images[0].url: must not hold a user name or a password',
    ],
    [
      { ...block, images: [{ ...image, sha256: 'abc' }] },
      'providers[0].kvm.images[0].sha256: must be 64 hexadecimal digits',
    ],
    [
      { ...block, machineTypes: [{ ...machineType, memoryMiB: 1 }] },
      'providers[0].kvm.machineTypes[0].memoryMiB: ',
    ],
    [
      { ...block, machineTypes: [{ ...machineType, diskGiB: 0.5 }] },
      'providers[0].kvm.machineTypes[0].diskGiB: ',
    ],
  ])('%j names the field', (kvm, problem) => {
    const problems = problemsOf(kvm);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(problem);
    expect(problems[0]).not.toContain('secret@');
  });
});
