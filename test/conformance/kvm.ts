/**
 * The kvm provider on a real libvirtd, reached through a real sshd in namespaces of the test's own.
 * Its machines are emulated guests with a real Squid, fetched from a web server of the test.
 */
import { randomUUID } from 'node:crypto';
import type { KvmBlock } from '#agent/providers/config-kvm.ts';
import { formatDomain } from '#agent/providers/kvm/domain-xml.ts';
import type { Hosts } from '#agent/providers/kvm/hosts.ts';
import { formatId } from '#agent/providers/kvm/id.ts';
import { createKvmProvider } from '#agent/providers/kvm/provider.ts';
import type { Mark } from '#agent/providers/provider.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { configWith } from '#test/agent/providers/kvm/block.ts';
import { closedPort, listenTcp } from '#test/fakes/proxies.ts';
import { blockFor, connectionsTo } from '#test/guests/host-access.ts';
import { cannotBuildGuest, guestImage } from '#test/guests/image.ts';
import { serveFile, startImageServer } from '#test/guests/image-server.ts';
import { Hypervisor } from '#test/hypervisor/hypervisor.ts';
import { cannotRunHypervisor } from '#test/hypervisor/machine.ts';
import type { Backend } from './backend.ts';
import { CONFIGURED_NAME } from './world.ts';

const HOST = 'hv1';
const IMAGE = 'mini';
/** More memory than a host of this project has: the most that the configuration allows. */
const HUGE = { name: 'huge', cpus: 1, memoryMiB: 16 * 1024 * 1024, diskGiB: 1 };
/** A guest has its address after about ten seconds; emulation on a busy machine takes longer. */
const SETTLE_MS_MAX = 90_000;

/** Why the backend cannot be had here; undefined when it can. */
export const cannotRun = cannotRunHypervisor() ?? cannotBuildGuest();

export async function openKvmBackend(): Promise<Backend> {
  await using closing = new AsyncDisposableStack();
  const image = await guestImage('mini');
  const images = await startImageServer(serveFile(image.path));
  closing.defer(() => images.close());
  const hypervisor = await Hypervisor.start();
  closing.defer(() => hypervisor.stop());
  const silentServer = await listenTcp(() => {});
  closing.defer(() => silentServer.close());
  const nobodyListens = await closedPort();

  const connections = connectionsTo(hypervisor);
  closing.defer(() => connections.close());

  const logLines: string[] = [];
  const log = {
    debug: (fields: object, message: string) =>
      void logLines.push(JSON.stringify({ ...fields, message })),
  };
  const block = blockFor(hypervisor, { name: IMAGE, url: images.url, sha256: image.sha256 });
  const elsewhere = (port: number) => ({
    ...block,
    hosts: block.hosts.map((host) => ({ ...host, address: '127.0.0.1', port })),
  });
  const providerWith = (over: object) => {
    const config = configWith(over, CONFIGURED_NAME);
    return createKvmProvider(config, {
      hosts: connections.hosts(config.kvm),
      clock,
      random: Math.random,
      newUuid: randomUUID,
      log,
      dispatcher: images.dispatcher,
    });
  };
  const { kvm } = configWith(block, CONFIGURED_NAME);
  const resources = closing.move();
  return {
    surroundings: { namespace: 'crawl', placement: { zone: HOST, image: IMAGE }, port: 3128 },
    settleMsMax: SETTLE_MS_MAX,
    malformedIds: [
      'hosts/hv1',
      'hosts/hv1/domains/',
      'hosts//domains/a',
      'hosts/hv1/domains/a/b',
      'hosts/HV1/domains/a',
      'hosts/hv1/domains/../a',
      'domains/a/hosts/hv1',
      '/hosts/hv1/domains/a',
    ],
    idOf: (name) => formatId({ host: HOST, name }),
    logLines,
    newProvider: () => providerWith(block),
    refused: () => providerWith(elsewhere(nobodyListens)),
    silent: () => providerWith(elsewhere(silentServer.port)),
    exhausted: () => providerWith({ ...block, machineTypes: [HUGE] }),
    ...machinesOf(hypervisor, connections.hosts(kvm), kvm),
    close: () => resources.disposeAsync(),
  };
}

/** What the backend shows of machines, and the machines that it makes beside the provider. */
function machinesOf(
  hypervisor: Hypervisor,
  hosts: Hosts,
  block: KvmBlock,
): Pick<Backend, 'machines' | 'secondary' | 'makeUnmarked' | 'makeMarked'> {
  const [host] = block.hosts;
  if (host === undefined) throw new Error('no host');

  async function define(xml: string): Promise<void> {
    const forever = new AbortController().signal;
    await hosts.call(host as NonNullable<typeof host>, forever, (libvirt, signal) =>
      libvirt.defineDomain(xml, signal),
    );
  }

  return {
    async machines(name) {
      const names = (await hypervisor.virsh('list', '--all', '--name')).split('\n');
      return names.includes(name) ? [await hypervisor.virsh('dumpxml', name)] : [];
    },
    async secondary(name) {
      const nvram = await hypervisor.run('ls', '/var/lib/libvirt/qemu/nvram');
      const files = [...(await hypervisor.poolFiles()), ...nvram.split('\n')];
      return files.filter((file) => file.startsWith(name));
    },
    async makeUnmarked(name) {
      await define(
        `<domain type='qemu'><name>${name}</name><memory>65536</memory>` +
          "<os><type arch='x86_64'>hvm</type></os></domain>",
      );
      return formatId({ host: HOST, name });
    },
    async makeMarked(name: string, mark: Mark) {
      const volume = `${name}.qcow2`;
      await define(
        formatDomain({
          name,
          uuid: randomUUID(),
          metadata: {
            mark,
            proxy: { namespace: 'crawl', name: 'theirs' },
            createdAtMs: clock.now(),
            plan: { image: IMAGE, diskGiB: 1 },
            phase: 'started',
          },
          virtType: 'qemu',
          firmware: 'efi',
          cpus: 1,
          memoryMiB: 256,
          disk: { pool: hypervisor.pool, volume },
          seed: { pool: hypervisor.pool, volume: `${name}.iso` },
          network: hypervisor.network,
        }),
      );
      return formatId({ host: HOST, name });
    },
  };
}
