/** The way of the provider to a hypervisor host of the tests: configuration, credentials, sessions. */
import { type Connections, createConnections } from '#agent/providers/kvm/connections.ts';
import { systemClock as clock } from '#shared/clock.ts';
import type { Hypervisor } from '#test/hypervisor/hypervisor.ts';

/** What a `kvm` block says of the host and of one image. */
export function blockFor(
  { host, port, user, pool, network, socket }: Hypervisor,
  image: { readonly name: string; readonly url: string; readonly sha256: string },
) {
  return {
    hosts: [{ name: 'hv1', address: host, port, user, pool, network, socket, virtType: 'qemu' }],
    images: [image],
    machineTypes: [{ name: 'small', cpus: 1, memoryMiB: 256, diskGiB: 1 }],
  };
}

/** Connections whose Secret holds what `credentials` gives at the time, by default the host's own. */
export function connectionsTo(
  hypervisor: Hypervisor,
  credentials: () => Record<string, string> = () => credentialsOf(hypervisor),
): Connections {
  const metadata = { namespace: 'crawl', name: 'kvm-ssh', uid: '', resourceVersion: '' };
  const secrets = { get: async () => ({ metadata, data: credentials() }) };
  return createConnections({ secrets, clock, random: Math.random });
}

export function credentialsOf({ privateKey, knownHosts }: Hypervisor): Record<string, string> {
  return { id_ed25519: privateKey, known_hosts: knownHosts };
}
