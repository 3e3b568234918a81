/** A `kvm` block as the file of a test would give it, and a request for it. */
import type { KvmProviderConfig } from '#agent/providers/config.ts';
import type { CreateRequest } from '#agent/providers/provider.ts';
import { parsedConfig } from '../parsed-config.ts';

export const SHA256 = 'ab'.repeat(32);

const BLOCK = {
  sshSecret: { name: 'kvm-ssh', namespace: 'crawl' },
  hosts: [{ name: 'hv1', address: '127.0.0.1', user: 'prov', virtType: 'qemu' }],
  images: [{ name: 'debian-13', url: 'https://images.example.net/debian.qcow2', sha256: SHA256 }],
  machineTypes: [{ name: 'small', cpus: 1, memoryMiB: 256, diskGiB: 1 }],
};

/** `over` replaces whole keys of the block. */
export function configWith(over: object = {}, name = 'home'): KvmProviderConfig {
  const entry = { name, type: 'kvm' as const, kvm: { ...BLOCK, ...over } };
  return parsedConfig(entry);
}

export const request: CreateRequest = {
  name: 'proxy-abcdefghijklmnop',
  uid: '9d0d6b4e-5c1f-4f0e-9a64-0f1f6d5f3a11',
  installation: '3b2f8a60-7a9e-4a0c-8f4e-6d1f2f3a4b5c',
  namespace: 'crawl',
  proxyName: 'one',
  placement: {},
  port: 3128,
};

/** The start of a qcow2 image of version 3 without features. */
export function qcow2Head(virtualBytes: number): Buffer {
  const head = Buffer.alloc(104);
  head.write('QFI\xfb', 'latin1');
  head.writeUInt32BE(3, 4);
  head.writeBigUInt64BE(BigInt(virtualBytes), 24);
  return head;
}
