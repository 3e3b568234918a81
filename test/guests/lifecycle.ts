/**
 * The life of a virtual proxy, as a user of the cluster sees it: the real agent, a real libvirtd
 * behind a real sshd, and a guest that boots, takes its seed and serves.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ProxyAgent, request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { JsonObject } from '#deploy/local/control-plane/json.ts';
import { systemClock as clock } from '#shared/clock.ts';
import { CLOUD_INIT_LABEL, INSTALLATION_LABEL } from '#shared/crd/names.ts';
import { Hypervisor } from '#test/hypervisor/hypervisor.ts';
import { type AgentWorld, openAgentWorld } from '#test/integration/agent-world.ts';
import { type ApiProxy, startApiProxy } from '#test/integration/api-proxy.ts';
import { eventually } from '#test/integration/eventually.ts';
import { createProxy, PROXIES } from '#test/integration/proxy-objects.ts';
import { blockFor } from './host-access.ts';
import type { GuestImage } from './image.ts';
import { type ImageServer, serveFile, startImageServer } from './image-server.ts';
import type { SquidWish } from './user-data.ts';

const PORT = 3129;
const SECRETS = '/api/v1/namespaces/default/secrets';
const MERGE = 'application/merge-patch+json';
/** Sweeps come fast, as one of the steps waits for one. */
const FLAGS = ['--gc-interval=2s', '--gc-min-age=1s', '--provider-check-interval=10s'];
const SETUP_MS = 600_000;

export interface Guest {
  /** Builds its image, or finds it. */
  readonly image: () => Promise<GuestImage>;
  readonly userData: (wish: SquidWish) => string;
  readonly memoryMiB: number;
  readonly diskGiB: number;
  /** Longest time from the Proxy object, or a change of it, to a proxy that is probed well. */
  readonly readyMsMax: number;
}

/** Declares the tests; each goes on from the one before. */
export function describeLifecycle(guest: Guest): void {
  let hypervisor: Hypervisor;
  let images: ImageServer;
  let world: AgentWorld;
  let relay: ApiProxy;
  let origin: { url: string; clients: Set<string>; close(): Promise<void> };
  const closing = new AsyncDisposableStack();

  beforeAll(async () => {
    const image = await guest.image();
    images = await startImageServer(serveFile(image.path));
    closing.defer(() => images.close());
    hypervisor = await Hypervisor.start();
    closing.defer(() => hypervisor.stop());
    origin = await startOrigin(hypervisor.gateway);
    closing.defer(() => origin.close());
    const authority = join(tmpdir(), `egress-image-ca-${process.pid}.pem`);
    writeFileSync(authority, images.caPem);
    closing.defer(() => rmSync(authority));
    world = await openAgentWorld({
      env: { NODE_EXTRA_CA_CERTS: authority },
      providers: [providerEntry(hypervisor, guest, { url: images.url, sha256: image.sha256 })],
    });
    closing.defer(() => world.close());
    relay = await startApiProxy(world.api, {});
    closing.defer(() => relay.close());
    await putSecret('kvm-ssh', {
      id_ed25519: hypervisor.privateKey,
      known_hosts: hypervisor.knownHosts,
    });
    await putSecret(
      'user-data',
      { 'user-data': userData('first') },
      { [CLOUD_INIT_LABEL]: 'true' },
    );
    await world.startAgent('agent', relay, FLAGS);
  }, SETUP_MS);
  afterAll(() => closing.disposeAsync(), SETUP_MS);

  const userData = (version: string) => guest.userData({ version, port: PORT });

  async function putSecret(
    name: string,
    stringData: Record<string, string>,
    labels: Record<string, string> = {},
  ): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name, labels }, stringData };
    await world.kube.request({ method: 'POST', path: SECRETS, body });
  }

  async function statusOf(name: string): Promise<JsonObject> {
    const proxy = await world.kube.request({ path: `${PROXIES}/${name}` });
    return (proxy['status'] ?? {}) as JsonObject;
  }

  /** A page through the proxy; what it says of the way that it took. */
  async function fetchThrough(ip: unknown): Promise<{ text: string; via: string }> {
    const dispatcher = new ProxyAgent({ uri: `http://${ip}:${PORT}`, proxyTunnel: false });
    try {
      const answer = await request(origin.url, { dispatcher, signal: AbortSignal.timeout(5_000) });
      return { text: await answer.body.text(), via: String(answer.headers['via']) };
    } finally {
      await dispatcher.destroy();
    }
  }

  async function ready(version: string): Promise<JsonObject> {
    try {
      return await eventually(async () => {
        const status = await statusOf('guest');
        expect(status).toMatchObject({ phase: 'Ready' });
        expect((await fetchThrough(status['ip'])).via).toContain(version);
        return status;
      }, guest.readyMsMax);
    } catch (error) {
      const said = JSON.stringify(await statusOf('guest'));
      throw new Error(`${String(error)}\n${said}\n${world.logTail('agent').join('\n')}`);
    }
  }

  const uuidOf = async () =>
    (await hypervisor.virsh('list', '--all', '--uuid')).split('\n').filter((uuid) => uuid !== '');

  it('the provider is found ready, with what there is to know of the host', async () => {
    const health = await eventually(async () => {
      const path = '/apis/crawl.example.com/v1alpha1/providerhealths/home';
      const { status } = (await world.kube.request({ path })) as { status?: JsonObject };
      expect(status?.['targetStatuses']).toMatchObject([{ name: 'hv1', ready: true }]);
      return status;
    }, 20_000);
    expect(health?.['targetStatuses']).toMatchObject([
      { reason: 'Reachable', details: { poolState: 'running', version: expect.any(String) } },
    ]);
  });

  it('boots, takes its seed, gets an address, is probed through and serves', {
    timeout: guest.readyMsMax + 10_000,
  }, async () => {
    const startedMs = clock.monotonicMs();
    await createProxy(world.kube, 'guest', {
      provider: 'home',
      port: PORT,
      cloudInit: { secretRef: { name: 'user-data' } },
      healthCheck: { url: origin.url, intervalSeconds: 2, timeoutSeconds: 1 },
    });
    const status = await ready('first');
    console.info(`ready after ${Math.round(clock.monotonicMs() - startedMs)} ms`);
    expect(status['ip']).toMatch(
      new RegExp(`^${hypervisor.guestNetwork.replaceAll('.', '\\.')}\\.`),
    );
    expect((await fetchThrough(status['ip'])).text).toBe('hello');
    expect(origin.clients).toContain(status['ip']);
  });

  it('volumes that belong to no machine are swept away, and nothing else', {
    timeout: 60_000,
  }, async () => {
    const [uuid = ''] = await uuidOf();
    const xml = await hypervisor.virsh('dumpxml', '--inactive', uuid);
    const installation = new RegExp(`${INSTALLATION_LABEL}[^>]*>([^<]+)<`).exec(xml)?.[1] ?? '';
    const before = await hypervisor.poolFiles();
    const ours = `proxy-aaaaaaaaaaaaaaaa.gone.${installation}.00000000.qcow2`;
    const theirs = 'proxy-bbbbbbbbbbbbbbbb.gone.another-installation.00000000.qcow2';
    for (const name of [ours, theirs, 'by-hand.qcow2']) {
      await hypervisor.virsh('vol-create-as', hypervisor.pool, name, '1M');
    }
    await eventually(async () => expect(await hypervisor.poolFiles()).not.toContain(ours), 40_000);
    expect(await hypervisor.poolFiles()).toEqual([...before, theirs, 'by-hand.qcow2'].sort());
    for (const name of [theirs, 'by-hand.qcow2']) {
      await hypervisor.virsh('vol-delete', '--pool', hypervisor.pool, name);
    }
  });

  it('is replaced when its cloud-init Secret rotates', {
    timeout: guest.readyMsMax + 10_000,
  }, async () => {
    const before = await uuidOf();
    const body = { stringData: { 'user-data': userData('second') } };
    await world.kube.request({
      method: 'PATCH',
      path: `${SECRETS}/user-data`,
      contentType: MERGE,
      body,
    });
    await ready('second');
    const after = await uuidOf();
    expect(after).toHaveLength(1);
    expect(after).not.toEqual(before);
    // The image is on the host already.
    expect(images.requests).toBe(1);
  });

  it('is deleted with nothing left of it on the host', { timeout: 60_000 }, async () => {
    await world.kube.request({ method: 'DELETE', path: `${PROXIES}/guest` });
    await eventually(async () => {
      const gone = world.kube.request({ path: `${PROXIES}/guest` });
      await expect(gone).rejects.toMatchObject({ status: 404 });
    }, 40_000);
    expect(await uuidOf()).toEqual([]);
    const files = await hypervisor.poolFiles();
    expect(files.filter((name) => !name.startsWith('egress-image-guest-'))).toEqual([]);
    expect(await hypervisor.run('ls', '/var/lib/libvirt/qemu/nvram')).toBe('');
    expect(await hypervisor.processes('qemu-system-x86')).toEqual([]);
  });
}

function providerEntry(
  hypervisor: Hypervisor,
  { memoryMiB, diskGiB }: Guest,
  image: { readonly url: string; readonly sha256: string },
): object {
  const sshSecret = { name: 'kvm-ssh', namespace: 'default' };
  const machineTypes = [{ name: 'small', cpus: 1, memoryMiB, diskGiB }];
  const block = { ...blockFor(hypervisor, { name: 'guest', ...image }), sshSecret, machineTypes };
  return { name: 'home', type: 'kvm', kvm: block };
}

/** A page for proxies to fetch, at an address that guests reach. */
async function startOrigin(
  host: string,
): Promise<{ url: string; clients: Set<string>; close(): Promise<void> }> {
  const clients = new Set<string>();
  const server = createServer((incoming, outgoing) => {
    clients.add(incoming.socket.remoteAddress ?? '');
    outgoing.end('hello');
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    url: `http://${host}:${port}/`,
    clients,
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}
