/** The kvm provider while a real host, its disk, its services or the image's server fail. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ProviderError } from '#agent/providers/errors.ts';
import type { Connections } from '#agent/providers/kvm/connections.ts';
import { createKvmProvider } from '#agent/providers/kvm/provider.ts';
import { instanceName } from '#agent/providers/naming.ts';
import type { Checker, CreateRequest, Instance, Provider } from '#agent/providers/provider.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { configWith } from '#test/agent/providers/kvm/block.ts';
import { blockFor, connectionsTo, credentialsOf } from '#test/guests/host-access.ts';
import { cannotBuildGuest, type GuestImage, guestImage } from '#test/guests/image.ts';
import {
  type ImageServer,
  type Serve,
  serveCutOff,
  serveFile,
  startImageServer,
} from '#test/guests/image-server.ts';
import { Hypervisor } from '#test/hypervisor/hypervisor.ts';
import { cannotRunHypervisor } from '#test/hypervisor/machine.ts';
import { eventually } from './eventually.ts';

const cannotRun = cannotRunHypervisor() ?? cannotBuildGuest();
const MIB = 1024 * 1024;
/** A guest comes up within 15 s where nothing else runs. */
const UP_MS = 90_000;
const TEST_MS = 150_000;

describe.skipIf(cannotRun !== undefined)(
  `the kvm provider on a host with faults${cannotRun === undefined ? '' : ` (${cannotRun})`}`,
  { timeout: TEST_MS },
  () => {
    let hypervisor: Hypervisor;
    let images: ImageServer;
    let image: GuestImage;
    let serve: Serve;
    let connections: Connections;
    let credentials: Record<string, string>;
    let provider: Provider & Checker;
    let request: CreateRequest;
    const signal = new AbortController().signal;

    beforeAll(async () => {
      image = await guestImage('mini');
      images = await startImageServer((...at) => serve(...at));
      hypervisor = await Hypervisor.start();
    }, TEST_MS);
    afterAll(async () => {
      await hypervisor?.stop();
      await images?.close();
    }, TEST_MS);

    beforeEach(() => {
      serve = serveFile(image.path);
      credentials = credentialsOf(hypervisor);
      connections = connectionsTo(hypervisor, () => credentials);
      provider = restarted();
      const uid = randomUUID();
      request = {
        name: instanceName(uid),
        uid,
        installation: randomUUID(),
        namespace: 'crawl',
        proxyName: 'one',
        placement: {},
        port: 3128,
      };
    });
    afterEach(async () => {
      for (const { id } of await restarted().listByTag(signal)) {
        await restarted().delete(id, signal);
      }
      connections.close();
      await clearImages();
    });

    /** A provider without memory of those before it; `over` replaces keys of its block. */
    function restarted(over: object = {}): Provider & Checker {
      const { url } = images;
      const block = blockFor(hypervisor, { name: 'mini', url, sha256: image.sha256 });
      const config = configWith({ ...block, ...over });
      return createKvmProvider(config, {
        hosts: connections.hosts(config.kvm),
        clock,
        random: Math.random,
        newUuid: randomUUID,
        dispatcher: images.dispatcher,
      });
    }

    const idOf = (name: string) => `hosts/hv1/domains/${name}`;
    const files = async (ending: RegExp) =>
      (await hypervisor.poolFiles()).filter((name) => ending.test(name));

    async function clearImages(): Promise<void> {
      for (const name of await hypervisor.poolFiles()) {
        await hypervisor.virsh('vol-delete', '--pool', hypervisor.pool, name).catch(() => '');
      }
    }

    const detail = (expected: string | RegExp) =>
      eventually(async () => {
        const instance = await provider.get(idOf(request.name), signal);
        expect(instance.state).toBe('Provisioning');
        expect(instance.detail).toMatch(expected);
        return instance;
      }, UP_MS);

    const running = (id = idOf(request.name)): Promise<Instance> =>
      eventually(async () => {
        const instance = await provider.get(id, signal);
        expect(instance.state, instance.detail).toBe('Running');
        return instance;
      }, UP_MS);

    async function failureOf(call: Promise<unknown>): Promise<ProviderError> {
      const error: unknown = await call.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      if (error instanceof ProviderError) return error;
      throw new Error(`no ProviderError: ${String(error)}`);
    }

    /** One machine of the request, whole; deleting it leaves the image alone. */
    async function isWholeAndGoes(): Promise<void> {
      await running();
      const names = (await hypervisor.virsh('list', '--all', '--name')).trim().split('\n');
      expect(names).toEqual([request.name]);
      expect(await files(/\.(?:qcow2|iso)$/)).toHaveLength(2);
      expect(await files(/^egress-image-/)).toHaveLength(2);
      await provider.delete(idOf(request.name), signal);
      expect(await files(/\.(?:qcow2|iso)$/)).toEqual([]);
      expect((await failureOf(provider.get(idOf(request.name), signal))).class).toBe('NotFound');
    }

    it('a pool that is stopped: nothing is made, and the check says why', async () => {
      await hypervisor.virsh('pool-destroy', hypervisor.pool);
      try {
        const error = await failureOf(provider.create(request, signal));
        expect(error.class).toBe('Transient');
        expect(error.message).toContain('pool images of host hv1 is not running');
        expect(await provider.check(signal)).toMatchObject([
          { name: 'hv1', ready: false, reason: 'PoolNotRunning' },
        ]);
        expect((await failureOf(provider.listByTag(signal))).class).toBe('Transient');
        expect((await hypervisor.virsh('list', '--all', '--name')).trim()).toBe('');
      } finally {
        await hypervisor.virsh('pool-start', hypervisor.pool);
      }
      expect(await provider.check(signal)).toMatchObject([{ ready: true }]);
    });

    it('a pool or a network that is not there is Permanent', async () => {
      const [host] = blockFor(hypervisor, { name: 'mini', url: images.url, sha256: '' }).hosts;
      for (const [over, reason] of [
        [{ pool: 'nowhere' }, 'PoolNotFound'],
        [{ network: 'nowhere' }, 'NetworkNotFound'],
      ] as const) {
        const other = restarted({ hosts: [{ ...host, ...over }] });
        expect((await failureOf(other.create(request, signal))).class).toBe('Permanent');
        expect(await other.check(signal)).toMatchObject([{ ready: false, reason }]);
      }
    });

    it('a host without KVM, where it is asked for, is told by the check', async () => {
      const [host] = blockFor(hypervisor, { name: 'mini', url: images.url, sha256: '' }).hosts;
      const other = restarted({ hosts: [{ ...host, virtType: 'kvm' }] });
      expect(await other.check(signal)).toMatchObject([{ reason: 'KVMUnavailable' }]);
    });

    it('an image with a wrong checksum is never used, and the file is removed', async () => {
      const images1 = [{ name: 'mini', url: images.url, sha256: '0'.repeat(64) }];
      provider = restarted({ images: images1 });
      await provider.create(request, signal);
      await detail(new RegExp(`image mini has the SHA-256 ${image.sha256}, not 0{64}`));
      expect(await files(/^egress-image-/)).toEqual([]);
      expect(await files(/\.qcow2$/)).toEqual([]);
    });

    it('a download that is cut off leaves nothing, and is done again', async () => {
      serve = serveCutOff(image.path, 5 * MIB);
      await provider.create(request, signal);
      await detail(/guest\.qcow2 was cut off/);
      expect(await files(/^egress-image-/)).toEqual([]);
      serve = serveFile(image.path);
      await isWholeAndGoes();
    });

    it('an agent that dies in the middle of an upload leaves what the next one clears', async () => {
      // Some of the image, and then nothing for ever.
      serve = (_request, response) => {
        response.writeHead(200, { 'content-length': 25 * MIB });
        response.write(Buffer.concat([Buffer.from('QFI\xfb', 'latin1'), Buffer.alloc(MIB)]));
      };
      await provider.create(request, signal);
      await eventually(async () => expect(await files(/\.img$/)).toHaveLength(1), 20_000);
      connections.close();
      await hypervisor.run('bash', '-c', `touch -d '1 hour ago' ${hypervisor.poolPath}/*.img`);
      serve = serveFile(image.path);
      connections = connectionsTo(hypervisor, () => credentials);
      provider = restarted();
      await isWholeAndGoes();
    });

    it('a guest that never gets an address stays Provisioning, and says so', async () => {
      await provider.create({ ...request, cloudInit: '#!/bin/sh\n' }, signal);
      // Nobody gives addresses out any more; the lease that there may be is forgotten.
      const servers = await hypervisor.processes('dnsmasq');
      await hypervisor.run('kill', '-KILL', ...servers.map(String));
      await hypervisor.run('bash', '-c', 'rm -f /var/lib/libvirt/dnsmasq/*.status');
      try {
        await detail('running, without an address');
        await clock.sleep(5_000);
        await detail('running, without an address');
      } finally {
        await hypervisor.virsh('net-destroy', hypervisor.network);
        await hypervisor.virsh('net-start', hypervisor.network);
      }
    });

    it('a domain that was renamed by hand is found by its mark, and goes with its volumes', async () => {
      await provider.create(request, signal);
      await running();
      await hypervisor.virsh('destroy', request.name);
      await hypervisor.virsh('domrename', request.name, 'by-hand');
      expect((await failureOf(provider.get(idOf(request.name), signal))).class).toBe('NotFound');
      expect(await provider.listByTag(signal)).toMatchObject([
        { id: idOf('by-hand'), uid: request.uid, state: 'Stopped' },
      ]);
      expect(await provider.create(request, signal)).toBe(idOf('by-hand'));
      await provider.delete(idOf('by-hand'), signal);
      expect((await hypervisor.virsh('list', '--all', '--name')).trim()).toBe('');
      expect(await files(/\.(?:qcow2|iso)$/)).toEqual([]);
    });

    it('a host whose key has changed is refused for good, until known_hosts has it', async () => {
      await provider.listByTag(signal);
      await hypervisor.changeHostKey();
      const error = await eventually(async () => {
        const failure = await failureOf(provider.create(request, signal));
        expect(failure.class).toBe('Permanent');
        return failure;
      });
      expect(error.message).toMatch(/not the key that known_hosts has for it/);
      expect(await provider.check(signal)).toMatchObject([{ reason: 'HostKeyRejected' }]);
      credentials = credentialsOf(hypervisor);
      expect(await provider.check(signal)).toMatchObject([{ ready: true }]);
    });

    it('libvirtd that is restarted in the middle of a creation: one machine', async () => {
      await provider.create(request, signal);
      await eventually(async () => expect(await files(/\.img$/)).toHaveLength(1), 20_000);
      await hypervisor.do('kill-libvirtd', 'start-libvirtd');
      const id = await eventually(() => provider.create(request, signal), 30_000);
      expect(id).toBe(idOf(request.name));
      await hypervisor.do('stop-libvirtd', 'start-libvirtd');
      await eventually(() => provider.get(id, signal), 30_000);
      await isWholeAndGoes();
    });
  },
);

describe.skipIf(cannotRun !== undefined)(
  `a host whose disk is full${cannotRun === undefined ? '' : ` (${cannotRun})`}`,
  { timeout: TEST_MS },
  () => {
    it('is QuotaExceeded with the numbers, for a machine and for an image', async () => {
      const image = await guestImage('mini');
      let goOn: () => void = () => undefined;
      const filled = new Promise<void>((resolve) => {
        goOn = resolve;
      });
      const images = await startImageServer((...at) => {
        void filled.then(() => serveFile(image.path)(...at));
      });
      const hypervisor = await Hypervisor.start({ poolBytes: 1100 * MIB });
      const connections = connectionsTo(hypervisor);
      try {
        const signal = new AbortController().signal;
        const { url, dispatcher } = images;
        const config = configWith(
          blockFor(hypervisor, { name: 'mini', url, sha256: image.sha256 }),
        );
        const hosts = connections.hosts(config.kvm);
        const provider = createKvmProvider(config, {
          hosts,
          clock,
          random: Math.random,
          newUuid: randomUUID,
          dispatcher,
        });
        const requestOf = (uid: string): CreateRequest => ({
          name: instanceName(uid),
          uid,
          installation: 'here',
          namespace: 'crawl',
          proxyName: 'one',
          placement: {},
          port: 3128,
        });
        const id = await provider.create(requestOf('one'), signal);
        // Filled up by somebody else before the image is there.
        const fill = `${hypervisor.poolPath}/of-somebody`;
        await hypervisor.run('fallocate', '-l', String(1090 * MIB), fill);
        goOn();
        await eventually(async () => {
          const { detail } = await provider.get(id, signal);
          expect(detail).toMatch(
            /pool images of host hv1 has 0\.0 GiB of 1\.1 GiB free; image mini needs 0\.0 GiB/,
          );
        }, 60_000);
        await expect(provider.create(requestOf('two'), signal)).rejects.toMatchObject({
          class: 'QuotaExceeded',
          message: expect.stringMatching(
            /pool images of host hv1 has 0\.0 GiB of 1\.1 GiB free; machine type small needs 1\.0 GiB/,
          ),
        });
        await provider.delete(id, signal);
      } finally {
        connections.close();
        await hypervisor.stop();
        await images.close();
      }
    });
  },
);
