import { describe, expect, test } from 'vitest';
import { formatDomain } from '#agent/providers/kvm/domain-xml.ts';
import { ADDRESS_SOURCE, DOMAIN_STATE, POOL_STATE } from '#agent/providers/kvm/libvirt/client.ts';
import { METADATA_URI } from '#agent/providers/kvm/metadata.ts';
import { machineVolumeName } from '#agent/providers/kvm/volume-names.ts';
import { refuse } from '#test/fakes/libvirt-host.ts';
import { request } from './block.ts';
import { classOf, ID, KvmWorld, signal } from './world.ts';

const GIB = 1024 ** 3;
const MINUTE_MS = 60_000;
const owner = {
  machine: request.name,
  uid: request.uid,
  installation: request.installation,
  generation: '00000000',
};

async function withMachine() {
  const world = new KvmWorld().serve();
  const provider = world.provider();
  await provider.create(request, signal);
  await world.running(provider);
  const domain = world.host.domains.get(request.name);
  if (domain === undefined) throw new Error('no domain');
  return { world, provider, domain };
}

describe('create', () => {
  test('answers before the image is fetched, and get tells how far that is', async () => {
    const world = new KvmWorld().serve();
    const provider = world.provider();
    expect(await provider.create(request, signal)).toBe(ID);
    expect(world.imageVolumes).toEqual([]);
    expect(world.host.domains.get(request.name)?.state).toBe(DOMAIN_STATE.shutoff);
    const seen = await provider.get(ID, signal);
    expect(seen).toMatchObject({ state: 'Provisioning', uid: request.uid });
    const instance = await world.running(provider);
    expect(instance).toMatchObject({ ip: '192.168.150.100', detail: 'running' });
  });

  test('fetches an image once for a host, whoever waits for it', async () => {
    const world = new KvmWorld().serve({}, 1);
    const [one, two] = [world.provider(), world.provider()];
    const other = { ...request, name: 'proxy-qrstuvwxyzabcdef', uid: 'another' };
    await Promise.all([one.create(request, signal), one.create(other, signal)]);
    await world.running(one);
    await world.running(one, ID.replace(request.name, other.name));
    // The web server would not answer a second time.
    const third = { ...request, name: 'proxy-third', uid: 'third' };
    await two.create(third, signal);
    await world.running(two, ID.replace(request.name, third.name));
    expect(world.imageVolumes).toHaveLength(2);
  });

  test('puts the user-data into the seed, and nothing of it into the log', async () => {
    const world = new KvmWorld().serve();
    const cloudInit = '#cloud-config\npassword: sentinel-of-kvm\n';
    await world.provider().create({ ...request, cloudInit }, signal);
    const seed = world.machineVolumes.find((name) => name.endsWith('.iso')) ?? '';
    expect(world.host.volumes.get(seed)?.content.includes(cloudInit)).toBe(true);
    const log = world.logLines.join('\n');
    expect(log).not.toContain('sentinel-of-kvm');
  });

  test('writes a seed again that was cut off', async () => {
    const world = new KvmWorld().serve();
    let seeded = 0;
    const dying = world.provider({
      before: (call) => {
        if (call === 'upload') seeded++;
        if (seeded > 0) throw new Error('killed');
      },
    });
    await classOf(dying.create(request, signal));
    const seed = world.machineVolumes.find((name) => name.endsWith('.iso')) ?? '';
    expect(world.host.volumes.get(seed)?.content).toHaveLength(0);
    const next = world.provider();
    // Nobody starts a machine without its user-data.
    expect(await next.get(ID, signal)).toMatchObject({ detail: 'without its seed yet' });
    await world.pass(MINUTE_MS);
    expect(world.host.domains.get(request.name)?.state).toBe(DOMAIN_STATE.shutoff);
    await next.create(request, signal);
    expect(world.host.volumes.get(seed)?.content.length).toBeGreaterThan(0);
    await world.running(next);
  });

  test.each([
    ['a host that is unknown', { placement: { zone: 'hv9' } }, 'placement.zone "hv9"'],
    ['a UID that no volume can carry', { uid: 'a/b' }, 'UID'],
    ['a name that no volume can carry', { name: 'a.b' }, 'name'],
    ['too much user-data', { cloudInit: 'x'.repeat(5_000_000) }, 'user-data has 5000000 bytes'],
  ])('with %s is Permanent, and asks no host', async (_what, over, message) => {
    const world = new KvmWorld();
    const call = world.provider().create({ ...request, ...over }, signal);
    await expect(call).rejects.toMatchObject({
      class: 'Permanent',
      message: expect.stringContaining(message),
    });
    expect(world.host.calls).toEqual([]);
  });

  test.each<[string, (world: KvmWorld) => void, string, string]>([
    [
      'a full pool',
      ({ host }) => {
        host.poolFree = GIB - 1;
      },
      'QuotaExceeded',
      'pool default of host hv1 has 1.0 GiB of 200.0 GiB free; machine type small needs 1.0 GiB',
    ],
    [
      'little memory',
      ({ host }) => {
        host.memoryAvailable = GIB / 8;
      },
      'QuotaExceeded',
      'host hv1 has 128 MiB of 65536 MiB memory available; machine type small needs 256 MiB',
    ],
    [
      'a pool that is stopped',
      ({ host }) => {
        host.poolState = POOL_STATE.inactive;
      },
      'Transient',
      'pool default of host hv1 is not running',
    ],
    [
      'a network that is stopped',
      ({ host }) => {
        host.networkActive = false;
      },
      'Transient',
      'network default of host hv1 is not active',
    ],
  ])('on a host with %s makes nothing', async (_what, change, errorClass, message) => {
    const world = new KvmWorld().serve();
    change(world);
    await expect(world.provider().create(request, signal)).rejects.toMatchObject({
      class: errorClass,
      message: expect.stringContaining(message),
    });
    expect(world.host.domains.size).toBe(0);
    expect(world.host.volumes.size).toBe(0);
  });

  test('beside a machine that is being deleted is Transient', async () => {
    const { world, domain } = await withMachine();
    domain.xml = domain.xml.replace('>started<', '>deleting<');
    expect(await classOf(world.provider().create(request, signal))).toBe('Transient');
    expect(world.host.domains.size).toBe(1);
  });

  test('gives the machine back that was renamed by hand', async () => {
    const { world, provider, domain } = await withMachine();
    world.host.domains.delete(request.name);
    domain.name = 'by-hand';
    world.host.domains.set('by-hand', domain);
    expect(await classOf(provider.get(ID, signal))).toBe('NotFound');
    expect(await provider.create(request, signal)).toBe('hosts/hv1/domains/by-hand');
    expect(world.host.domains.size).toBe(1);
    expect(await provider.listByTag(signal)).toMatchObject([
      { id: 'hosts/hv1/domains/by-hand', uid: request.uid },
    ]);
    await provider.delete('hosts/hv1/domains/by-hand', signal);
    expect(world.machineVolumes).toEqual([]);
  });

  test('leaves a domain under its name alone that is not of this Proxy', async () => {
    const { world, domain } = await withMachine();
    const before = domain.xml;
    for (const mark of [{ uid: 'another' }, { installation: 'another' }]) {
      const call = world.provider().create({ ...request, ...mark }, signal);
      expect(await classOf(call)).toBe('Permanent');
    }
    expect(domain.xml).toBe(before);
  });

  test('clears away what an earlier machine left under the name', async () => {
    const world = new KvmWorld().serve();
    world.leave(machineVolumeName(owner, 'disk'), 'old');
    const provider = world.provider();
    await provider.create(request, signal);
    await world.running(provider);
    expect(world.machineVolumes).toHaveLength(2);
    expect(world.machineVolumes).not.toContain(machineVolumeName(owner, 'disk'));
  });
});

describe('get', () => {
  test('shows a machine that never gets an address as Provisioning, and says so', async () => {
    const world = new KvmWorld().serve();
    world.host.address = undefined;
    const provider = world.provider();
    await provider.create(request, signal);
    await world.pass(MINUTE_MS);
    await world.until(async () => {
      const { state, detail } = await provider.get(ID, signal);
      expect(state).toBe('Provisioning');
      return detail === 'running, without an address' ? true : undefined;
    });
  });

  test.each(Object.entries(ADDRESS_SOURCE))('finds the address by %s', async (_name, source) => {
    const { world, provider } = await withMachine();
    world.host.addressSource = source;
    expect(await provider.get(ID, signal)).toMatchObject({ ip: '192.168.150.100' });
  });

  test('calls a state that it does not know Stopped, and tells its number', async () => {
    const { provider, domain } = await withMachine();
    domain.state = 42;
    expect(await provider.get(ID, signal)).toMatchObject({
      state: 'Stopped',
      detail: 'unknown state 42',
    });
  });

  test('shows a machine that is being deleted, for as long as that takes', async () => {
    const { world, provider } = await withMachine();
    const held = world.provider({
      before: (call) => {
        if (call === 'deleteVolume') refuse('systemError', 'Operation not permitted');
      },
    });
    for (let poll = 0; poll < 3; poll++) {
      expect(await classOf(held.delete(ID, signal))).toBe('Transient');
      expect(await provider.get(ID, signal)).toMatchObject({
        state: 'Stopped',
        detail: 'being deleted, shut off',
      });
    }
    await world.pass(10 * MINUTE_MS);
    expect(world.host.domains.get(request.name)?.state).toBe(DOMAIN_STATE.shutoff);
    await provider.delete(ID, signal);
    expect(await classOf(provider.get(ID, signal))).toBe('NotFound');
  });

  test('of a host that left the configuration is Permanent; delete and disown have nothing to do', async () => {
    const { world } = await withMachine();
    const hosts = [{ name: 'hv2', address: '10.0.0.2', user: 'prov' }];
    const after = world.provider({}, { hosts });
    expect(await classOf(after.get(ID, signal))).toBe('Permanent');
    await after.delete(ID, signal);
    await after.disown(ID, signal);
    expect(world.host.domains.size).toBe(1);
  });
});

describe('list', () => {
  test('skips a domain that cannot be read, and fails when the host does', async () => {
    const { world } = await withMachine();
    const other = { ...request, name: 'proxy-other', uid: 'other' };
    await world.provider().create(other, signal);
    let reads = 0;
    const blinking = world.provider({
      before: (call) => {
        if (call === 'domainXml' && reads++ === 0) refuse('internalError', 'unreadable');
      },
    });
    const listed = await blinking.listByTag(signal);
    expect(listed.map(({ uid }) => uid)).toEqual(['other']);
    const away = world.provider({
      before: () => {
        throw new Error('no route to host');
      },
    });
    expect(await classOf(away.listByTag(signal))).toBe('Transient');
  });

  test('shows disks and seeds without a domain as a machine that is no more', async () => {
    const world = new KvmWorld();
    const name = machineVolumeName(owner, 'disk');
    world.leave(name, 'disk');
    world.leave(machineVolumeName(owner, 'seed'), 'seed');
    world.leave('of-somebody-else.qcow2', 'disk');
    const provider = world.provider();
    const expected = {
      id: ID,
      uid: request.uid,
      installation: request.installation,
      state: 'Terminated',
      createdAtMs: world.clock.now(),
      detail: expect.stringContaining(name),
    };
    expect(await provider.listByTag(signal)).toEqual([expected]);
    expect(await provider.get(ID, signal)).toEqual(expected);
    await provider.delete(ID, signal);
    expect(world.host.volumeNames).toEqual(['of-somebody-else.qcow2']);
    expect(await classOf(provider.get(ID, signal))).toBe('NotFound');
  });

  test.each([
    ['by pool and volume', (name: string) => `<source pool='default' volume='${name}'/>`],
    ['by its path', (name: string) => `<source file='/pool/${name}'/>`],
  ])('leaves a disk alone that another domain uses %s', async (_how, source) => {
    const world = new KvmWorld();
    const name = machineVolumeName(owner, 'disk');
    world.leave(name, 'disk');
    world.host.domains.set('by-hand', {
      name: 'by-hand',
      uuid: 'u',
      xml: `<domain><devices><disk>${source(name)}</disk></devices></domain>`,
      state: DOMAIN_STATE.shutoff,
      reason: 0,
    });
    const provider = world.provider();
    expect(await provider.listByTag(signal)).toEqual([]);
    expect(await classOf(provider.get(ID, signal))).toBe('NotFound');
    await provider.delete(ID, signal);
    expect(world.host.volumeNames).toEqual([name]);
  });

  test('calls no disk unused while a domain cannot be read', async () => {
    const { world } = await withMachine();
    world.leave(machineVolumeName({ ...owner, machine: 'proxy-gone' }, 'disk'), 'disk');
    const blinking = world.provider({
      before: (call) => {
        if (call === 'domainXml') refuse('internalError', 'unreadable');
      },
    });
    expect(await blinking.listByTag(signal)).toEqual([]);
    const gone = ID.replace(request.name, 'proxy-gone');
    expect(await classOf(blinking.get(gone, signal))).toBe('Transient');
    expect(await classOf(blinking.delete(gone, signal))).toBe('Transient');
    expect(await world.provider().listByTag(signal)).toHaveLength(2);
  });
});

describe('delete', () => {
  test('waits for a volume that is being made at the moment', async () => {
    const { world } = await withMachine();
    let busy = 3;
    const provider = world.provider({
      before: (call) => {
        if (call === 'deleteVolume' && busy-- > 0) {
          refuse('operationInvalid', 'volume is still being allocated');
        }
      },
    });
    let gone = false;
    const deleting = provider.delete(ID, signal).then(() => {
      gone = true;
    });
    await world.until(() => gone || undefined);
    await deleting;
    expect(world.machineVolumes).toEqual([]);
  });

  test('leaves a domain alone that is not one of ours', async () => {
    const { world, provider, domain } = await withMachine();
    domain.xml = domain.xml.replace(METADATA_URI, 'https://example.net/');
    expect(await classOf(provider.delete(ID, signal))).toBe('Permanent');
    expect(world.host.domains.size).toBe(1);
    expect(world.machineVolumes).toHaveLength(2);
  });

  test('does not touch the machine that was made under the name meanwhile', async () => {
    const { world, domain } = await withMachine();
    const successor = formatDomain({
      name: request.name,
      uuid: '99999999-9999-4999-8999-999999999999',
      metadata: {
        mark: request,
        proxy: { namespace: 'crawl', name: 'one' },
        createdAtMs: 0,
        plan: { image: 'debian-13', diskGiB: 1 },
        phase: 'started',
      },
      virtType: 'qemu',
      firmware: 'efi',
      cpus: 1,
      memoryMiB: 256,
      disk: { pool: 'default', volume: 'new.qcow2' },
      seed: { pool: 'default', volume: 'new.iso' },
      network: 'default',
    });
    const slow = world.provider({
      before: (call) => {
        if (call !== 'undefineDomain') return;
        world.host.domains.delete(request.name);
        const uuid = '99999999-9999-4999-8999-999999999999';
        world.host.domains.set(request.name, { ...domain, uuid, xml: successor });
      },
    });
    await slow.delete(ID, signal);
    expect(world.host.domains.get(request.name)?.xml).toBe(successor);
  });
});
