/** The libvirt client over SSH, on a real libvirtd behind a real sshd, while these break. */
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  ADDRESS_SOURCE,
  AFFECT,
  DOMAIN_STATE,
  type LibvirtClient,
  POOL_STATE,
  type Volume,
} from '#agent/providers/kvm/libvirt/client.ts';
import { LibvirtSessions } from '#agent/providers/kvm/sessions.ts';
import type { SshCredentials } from '#agent/providers/kvm/ssh/dial.ts';
import { SshPool } from '#agent/providers/kvm/ssh/pool.ts';
import { systemClock } from '#shared/clock.ts';
import { Hypervisor } from '#test/hypervisor/hypervisor.ts';
import { cannotRunHypervisor } from '#test/hypervisor/machine.ts';
import { eventually } from './eventually.ts';

const cannotRun = cannotRunHypervisor();
const MIB = 1024 * 1024;
const POOL_BYTES = 1400 * MIB;

describe.skipIf(cannotRun)(`libvirt behind sshd${cannotRun ? ` (${cannotRun})` : ''}`, () => {
  let hypervisor: Hypervisor;
  let pool: SshPool;
  let sessions: LibvirtSessions;
  let credentials: SshCredentials;
  let signal: AbortSignal;

  beforeAll(async () => {
    hypervisor = await Hypervisor.start({ poolBytes: POOL_BYTES });
  });
  afterAll(() => hypervisor?.stop());

  beforeEach(() => {
    signal = AbortSignal.timeout(25_000);
    credentials = { privateKey: hypervisor.privateKey, knownHosts: hypervisor.knownHosts };
    pool = new SshPool({
      clock: systemClock,
      random: () => 0,
      credentials: async () => credentials,
      dialTimeoutMs: 3000,
      keepaliveIntervalMs: 500,
      keepaliveCountMax: 2,
      backoff: { baseMs: 20, maxMs: 100 },
    });
    sessions = new LibvirtSessions({
      clock: systemClock,
      pool,
      openTimeoutMs: 3000,
      libvirt: { keepalive: { intervalMs: 500, countMax: 2 } },
    });
  });
  afterEach(() => pool.close());

  const target = () => {
    const { host, port, user, socket } = hypervisor;
    return { host, port, user, socket };
  };
  const shared = () => sessions.shared(target(), signal);

  async function makeVolume(client: LibvirtClient, name: string, bytes: number): Promise<Volume> {
    const images = await client.poolByName('images', signal);
    const old = await client.volumeByName(images, name, signal).catch(() => undefined);
    if (old !== undefined) await client.deleteVolume(old, signal);
    const xml = `<volume><name>${name}</name><capacity>${bytes}</capacity>
      <allocation>0</allocation><target><format type='raw'/></target></volume>`;
    return await client.createVolume(images, xml, signal);
  }

  async function checksumOf(name: string): Promise<string> {
    const sums = await hypervisor.run('sha256sum', `${hypervisor.poolPath}/${name}`);
    return sums.split(' ')[0] ?? '';
  }

  /** A mebibyte again and again, and what it sums up to. */
  function bytesOf(mebibytes: number) {
    const chunk = randomBytes(MIB);
    const hash = createHash('sha256');
    for (let count = 0; count < mebibytes; count++) hash.update(chunk);
    async function* read() {
      for (let count = 0; count < mebibytes; count++) yield chunk;
    }
    return { source: read(), length: mebibytes * MIB, sum: hash.digest('hex') };
  }

  /** A source that goes on for ever, and tells how far it got. */
  function endless() {
    const seen = { bytes: 0 };
    const chunk = Buffer.alloc(64 * 1024);
    async function* read() {
      for (;;) {
        seen.bytes += chunk.length;
        yield chunk;
        await systemClock.sleep(1);
      }
    }
    return { source: read(), seen };
  }

  it('tells of the host', async () => {
    const client = await shared();
    expect(client.version).toMatch(/^\d+\.\d+\.\d+$/);
    await expect(client.hostname(signal)).resolves.toMatch(/^hypervisor-/);
    await expect(client.uri(signal)).resolves.toBe('qemu:///system');
    await expect(client.nodeInfo(signal)).resolves.toMatchObject({ model: 'x86_64' });
    await expect(client.capabilities(signal)).resolves.toContain('<domain type=');
    const memory = await client.hostMemory(signal);
    expect(memory.total).toBeGreaterThan(memory.available);
    expect(memory.available).toBeGreaterThanOrEqual(memory.free);
    const images = await client.poolByName('images', signal);
    await expect(client.poolInfo(images, signal)).resolves.toMatchObject({
      state: POOL_STATE.running,
      capacity: POOL_BYTES,
    });
    await expect(client.poolXml(images, signal)).resolves.toContain(hypervisor.poolPath);
    const network = await client.networkByName('vmnet', signal);
    await expect(client.isNetworkActive(network, signal)).resolves.toBe(true);
    await expect(client.networkLeases(network, null, signal)).resolves.toEqual([]);
  });

  it('says what is not there', async () => {
    const client = await shared();
    const images = await client.poolByName('images', signal);
    await expect(client.poolByName('x', signal)).rejects.toMatchObject({ code: 49, domain: 18 });
    await expect(client.volumeByName(images, 'x', signal)).rejects.toMatchObject({ code: 50 });
    await expect(client.domainByName('x', signal)).rejects.toMatchObject({ code: 42, domain: 10 });
    await expect(client.networkByName('x', signal)).rejects.toMatchObject({ code: 43 });
  });

  it('takes a volume through its life', async () => {
    const client = await shared();
    const { source, length, sum } = bytesOf(8);
    const volume = await makeVolume(client, 'life', length);
    await expect(client.upload(volume, source, { length }, signal)).resolves.toBe(length);
    await expect(client.volumeInfo(volume, signal)).resolves.toMatchObject({ capacity: length });
    await expect(client.volumePath(volume, signal)).resolves.toBe(`${hypervisor.poolPath}/life`);
    await expect(client.volumeXml(volume, signal)).resolves.toContain('<name>life</name>');
    await expect(checksumOf('life')).resolves.toBe(sum);
    const images = await client.poolByName('images', signal);
    await client.refreshPool(images, signal);
    await expect(client.listVolumes(images, signal)).resolves.toEqual([volume]);
    await client.deleteVolume(volume, signal);
    await expect(hypervisor.poolFiles()).resolves.toEqual([]);
  });

  it('takes a domain through its life', async () => {
    const client = await shared();
    const domain = await client.defineDomain(
      `<domain type='qemu'><name>life</name>
        <metadata><m:mark xmlns:m='urn:mark'><m:uid>1</m:uid></m:mark></metadata>
        <memory unit='MiB'>64</memory>
        <os><type arch='x86_64' machine='q35'>hvm</type></os>
        <cpu mode='custom' match='exact' check='none'><model fallback='forbid'>qemu64</model></cpu>
        <devices><interface type='network'><source network='vmnet'/></interface></devices>
      </domain>`,
      signal,
    );
    expect(domain.id).toBe(-1);
    await expect(client.domainMetadata(domain, 'urn:mark', 0, signal)).resolves.toContain('uid');
    const running = await client.startDomain(domain, signal);
    expect(running.id).toBeGreaterThan(0);
    await expect(client.domainState(domain, signal)).resolves.toMatchObject({
      state: DOMAIN_STATE.running,
    });
    await expect(
      client.domainAddresses(running, ADDRESS_SOURCE.lease, signal),
    ).resolves.toBeInstanceOf(Array);
    const none = { uri: 'urn:mark', prefix: 'm', xml: null };
    await client.setDomainMetadata(domain, none, AFFECT.live | AFFECT.config, signal);
    await expect(
      client.domainMetadata(domain, 'urn:mark', AFFECT.config, signal),
    ).rejects.toMatchObject({ code: 80 });
    await expect(client.listDomains(signal)).resolves.toEqual([running]);
    await expect(client.domainByUuid(domain.uuid, signal)).resolves.toEqual(running);
    await expect(client.domainXml(domain, 0, signal)).resolves.toContain(domain.uuid);
    await expect(client.hasManagedSave(domain, signal)).resolves.toBe(false);
    await client.destroyDomain(running, signal);
    await client.undefineDomain(domain, 0, signal);
    await expect(client.listDomains(signal)).resolves.toEqual([]);
  });

  it('uploads 1 GiB at bounded memory', { timeout: 60_000 }, async () => {
    signal = AbortSignal.timeout(55_000);
    using client = await sessions.dedicated(target(), signal);
    const { source, length, sum } = bytesOf(1024);
    const volume = await makeVolume(client, 'big', length);
    const before = process.memoryUsage().rss;
    let peak = before;
    async function* watched() {
      for await (const chunk of source) {
        peak = Math.max(peak, process.memoryUsage().rss);
        yield chunk;
      }
    }
    await expect(client.upload(volume, watched(), { length }, signal)).resolves.toBe(length);
    expect(peak - before).toBeLessThan(200 * MIB);
    await expect(checksumOf('big')).resolves.toBe(sum);
    await client.deleteVolume(volume, signal);
  });

  it('fails an upload when the disk is full, and goes on', { timeout: 60_000 }, async () => {
    signal = AbortSignal.timeout(55_000);
    const client = await shared();
    const volume = await makeVolume(client, 'full', POOL_BYTES * 2);
    const { source } = bytesOf(1500);
    await expect(client.upload(volume, source, {}, signal)).rejects.toMatchObject({
      name: 'LibvirtError',
      message: expect.stringContaining('No space left'),
    });
    await client.deleteVolume(volume, signal);
    await expect(shared()).resolves.toBe(client);
  });

  it('aborts an upload without harm to calls in flight or later', async () => {
    const client = await shared();
    const volume = await makeVolume(client, 'abort', 500 * MIB);
    const { source, seen } = endless();
    const controller = new AbortController();
    const upload = client.upload(volume, source, {}, controller.signal);
    const outcome = expect(upload).rejects.toThrow('enough');
    await eventually(() => expect(seen.bytes).toBeGreaterThan(MIB));
    const others = Array.from({ length: 20 }, () => client.hostname(signal));
    controller.abort(new Error('enough'));
    await outcome;
    await expect(Promise.all(others)).resolves.toHaveLength(20);
    // What it holds is given free: the volume can be deleted at once.
    await client.deleteVolume(volume, signal);
    await expect(shared()).resolves.toBe(client);
  });

  it('abandons calls in flight one by one: the others are answered', async () => {
    const client = await shared();
    const controllers = Array.from({ length: 40 }, () => new AbortController());
    const calls = controllers.map(({ signal }) => client.capabilities(signal));
    for (const controller of controllers.filter((_, index) => index % 2 === 0)) {
      controller.abort(new Error('enough'));
    }
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.map(({ status }) => status)).toEqual(
      controllers.map((_, index) => (index % 2 === 0 ? 'rejected' : 'fulfilled')),
    );
    await expect(shared()).resolves.toBe(client);
  });

  it('killed sshd fails an upload promptly; the next call connects anew', async () => {
    const client = await sessions.dedicated(target(), signal);
    const volume = await makeVolume(client, 'cut', 500 * MIB);
    const { source, seen } = endless();
    const upload = client.upload(volume, source, {}, signal);
    const outcome = expect(upload).rejects.toMatchObject({ name: 'LibvirtConnectionError' });
    await eventually(() => expect(seen.bytes).toBeGreaterThan(MIB));
    const killedAtMs = systemClock.monotonicMs();
    await hypervisor.do('kill-sshd');
    await outcome;
    expect(systemClock.monotonicMs() - killedAtMs).toBeLessThan(2000);
    await expect(shared()).rejects.toMatchObject({ kind: 'unreachable', permanent: false });
    await hypervisor.do('start-sshd');
    await eventually(async () => void (await (await shared()).hostname(signal)));
  });

  it('restarted libvirtd fails what is in flight; the next call has a new session', async () => {
    const client = await shared();
    await hypervisor.do('kill-libvirtd');
    await expect(client.ended).resolves.toMatchObject({ kind: 'ended' });
    await expect(client.hostname(signal)).rejects.toMatchObject({ kind: 'ended' });
    await expect(shared()).rejects.toMatchObject({ kind: 'socket', permanent: false });
    await hypervisor.do('start-libvirtd');
    await expect((await shared()).hostname(signal)).resolves.toMatch(/^hypervisor-/);
  });

  it('frozen libvirtd is noticed by its silence', async () => {
    const client = await shared();
    await hypervisor.do('freeze-libvirtd');
    await expect(client.hostname(signal)).rejects.toMatchObject({ kind: 'silent' });
    await hypervisor.do('thaw-libvirtd');
    await eventually(async () => void (await (await shared()).hostname(signal)));
  });

  it('frozen sshd is noticed by its silence', async () => {
    const client = await shared();
    await hypervisor.do('freeze-sshd');
    await expect(client.hostname(signal)).rejects.toMatchObject({ name: 'LibvirtConnectionError' });
    await expect(shared()).rejects.toMatchObject({ kind: 'unreachable' });
    await hypervisor.do('thaw-sshd');
    await eventually(async () => void (await (await shared()).hostname(signal)));
  });

  it('another host key is refused with its fingerprint, until known_hosts has it', async () => {
    await shared();
    const old = hypervisor.knownHosts;
    await hypervisor.changeHostKey();
    const error = await eventually(async () => {
      const refused = await shared().catch((error: unknown) => error);
      expect(refused).toMatchObject({ kind: 'hostKey', permanent: true });
      return refused as Error;
    });
    expect(error.message).toContain(`${hypervisor.host} presents ssh-ed25519 SHA256:`);
    credentials = { ...credentials, knownHosts: `${old}${hypervisor.knownHosts}` };
    await expect((await shared()).hostname(signal)).resolves.toMatch(/^hypervisor-/);
  });

  it('known_hosts as ssh-keygen hashes it is read', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'known-hosts-'));
    try {
      const file = join(folder, 'known_hosts');
      writeFileSync(file, hypervisor.knownHosts);
      execFileSync('ssh-keygen', ['-q', '-H', '-f', file], { stdio: 'ignore' });
      const knownHosts = readFileSync(file, 'utf8');
      expect(knownHosts).not.toContain(hypervisor.host);
      credentials = { ...credentials, knownHosts };
      await expect(shared()).resolves.toBeDefined();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it.each([
    ['no known host', { knownHosts: '' }, 'hostKey', 'known_hosts has no entry for'],
    ['a key that is none', { privateKey: 'sentinel-not-a-key' }, 'credentials', 'the private key'],
  ])('%s is for good, and tells no secret', async (_name, change, kind, words) => {
    credentials = { ...credentials, ...change };
    const error = await shared().catch((error: unknown) => error);
    expect(error).toMatchObject({ kind, permanent: true, message: expect.stringContaining(words) });
    expect(String((error as Error).stack)).not.toContain('sentinel');
  });

  it('a key that is not let in is for good; once it is, it is', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'key-'));
    try {
      const file = join(folder, 'key');
      execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file]);
      credentials = { ...credentials, privateKey: readFileSync(file, 'utf8') };
      await expect(shared()).rejects.toMatchObject({ kind: 'auth', permanent: true });
      hypervisor.allowKey(readFileSync(`${file}.pub`, 'utf8'));
      await eventually(() => shared());
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('a rotated key drains the old connection: what is in flight goes on', async () => {
    const client = await shared();
    const volume = await makeVolume(client, 'rotate', 8 * MIB);
    const { source, length, sum } = bytesOf(8);
    async function* slow() {
      for await (const chunk of source) {
        yield chunk;
        await systemClock.sleep(30);
      }
    }
    const upload = client.upload(volume, slow(), { length }, signal);
    credentials = { ...credentials, knownHosts: `# rotated\n${hypervisor.knownHosts}` };
    const next = await shared();
    expect(next).not.toBe(client);
    await expect(upload).resolves.toBe(length);
    await expect(checksumOf('rotate')).resolves.toBe(sum);
    await expect(client.ended).resolves.toMatchObject({ kind: 'closed' });
    await next.deleteVolume(volume, signal);
  });

  it('nobody at the address: unreachable within the deadline', async () => {
    const elsewhere = { ...target(), host: `${hypervisor.guestNetwork}.250` };
    await expect(sessions.shared(elsewhere, signal)).rejects.toMatchObject({ kind: 'unreachable' });
  });
});

describe.skipIf(cannotRun)(
  `libvirt that asks who one is${cannotRun ? ` (${cannotRun})` : ''}`,
  () => {
    it('is refused, with what to change', async () => {
      await using hypervisor = await Hypervisor.start();
      await hypervisor.configureLibvirtd('auth_unix_rw = "sasl"');
      const { host, port, user, socket, privateKey, knownHosts } = hypervisor;
      const pool = new SshPool({
        clock: systemClock,
        random: () => 0,
        credentials: async () => ({ privateKey, knownHosts }),
      });
      try {
        const sessions = new LibvirtSessions({ clock: systemClock, pool });
        const asked = sessions.shared({ host, port, user, socket }, AbortSignal.timeout(20_000));
        await expect(asked).rejects.toMatchObject({
          name: 'LibvirtRefusedError',
          kind: 'auth',
          message: expect.stringContaining('auth_unix_rw = "none"'),
        });
      } finally {
        pool.close();
      }
    });
  },
);
