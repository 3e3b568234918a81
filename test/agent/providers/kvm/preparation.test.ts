import { describe, expect, test } from 'vitest';
import { DOMAIN_STATE } from '#agent/providers/kvm/libvirt/client.ts';
import { request } from './block.ts';
import { ID, IMAGE, KvmWorld, SHA256, signal } from './world.ts';

const GIB = 1024 ** 3;
const MINUTE_MS = 60_000;

describe('the work behind create', () => {
  test('tells why it fails, and goes on when that is mended', async () => {
    const world = new KvmWorld().serve({ status: 503 }, 2).serve();
    const provider = world.provider();
    await provider.create(request, signal);
    const failing = await world.until(async () => {
      const { state, detail } = await provider.get(ID, signal);
      expect(state).not.toBe('Stopped');
      return detail?.includes('503') ? detail : undefined;
    });
    expect(failing).toBe('https://images.example.net/debian.qcow2 answers 503');
    await world.running(provider);
  });

  test('never trusts an image with another checksum, and takes one of a mended file', async () => {
    const wrong = Buffer.from(IMAGE);
    wrong.write('tampered', 500);
    const world = new KvmWorld().serve({ body: wrong }, 1).serve();
    const provider = world.provider();
    await provider.create(request, signal);
    const detail = await world.until(async () => {
      const seen = await provider.get(ID, signal);
      return seen.detail?.includes('SHA-256') ? seen.detail : undefined;
    });
    expect(detail).toMatch(
      new RegExp(`image debian-13 has the SHA-256 [0-9a-f]{64}, not ${SHA256}`),
    );
    expect(world.imageVolumes).toEqual([]);
    expect(world.host.domains.get(request.name)?.state).toBe(DOMAIN_STATE.shutoff);
    await world.running(provider);
  });

  test('waits with an image that is wrong for good, and with others less', async () => {
    const wrong = Buffer.from('<html>not here</html>'.repeat(10));
    const world = new KvmWorld().serve({ body: wrong }, 1).serve();
    const provider = world.provider();
    await provider.create(request, signal);
    const startMs = world.clock.now();
    await world.running(provider);
    expect(world.clock.now() - startMs).toBeGreaterThan(9 * MINUTE_MS);
  });

  test('goes on with a mended configuration', async () => {
    const world = new KvmWorld().serve({ status: 404 }, 1).serve();
    const wrong = [
      { name: 'debian-13', url: 'https://images.example.net/debian.qcow2', sha256: '0'.repeat(64) },
    ];
    const before = world.provider({}, { images: wrong });
    await before.create(request, signal);
    const after = world.provider();
    await world.running(after);
  });

  test('tells that the image left the configuration', async () => {
    const world = new KvmWorld().serve({ status: 404 });
    await world.provider().create(request, signal);
    const renamed = [
      { name: 'debian-14', url: 'https://images.example.net/debian.qcow2', sha256: SHA256 },
    ];
    const after = world.provider({}, { images: renamed });
    const detail = await world.until(async () => {
      const seen = await after.get(ID, signal);
      return seen.detail?.includes('configuration') ? seen.detail : undefined;
    });
    expect(detail).toBe('image debian-13 is no longer in the configuration');
  });

  test('waits for memory that was given away meanwhile', async () => {
    const world = new KvmWorld().serve();
    const provider = world.provider();
    await provider.create(request, signal);
    world.host.memoryAvailable = 0;
    const detail = await world.until(async () => {
      const seen = await provider.get(ID, signal);
      return seen.detail?.includes('memory') ? seen.detail : undefined;
    });
    expect(detail).toContain('host hv1 has 0 MiB of 65536 MiB memory available');
    world.host.memoryAvailable = 8 * GIB;
    await world.running(provider);
  });

  test('makes a disk anew that is not over this image, or not of this size', async () => {
    const world = new KvmWorld().serve();
    const provider = world.provider();
    await provider.create(request, signal);
    const disk = /volume='([^']*\.qcow2)'/.exec(world.host.domains.get(request.name)?.xml ?? '');
    world.leave(disk?.[1] ?? '', 'of somebody');
    await world.running(provider);
    const xml = world.host.volumes.get(disk?.[1] ?? '')?.xml;
    expect(xml).toContain(`<capacity unit='bytes'>${GIB}</capacity>`);
    expect(xml).toMatch(/<backingStore><path>\/pool\/egress-image-debian-13-/);
  });

  test('ends when nobody asks for the machine any more, and begins again when somebody does', async () => {
    const world = new KvmWorld().serve({ status: 503 }, 1_000);
    const provider = world.provider();
    await provider.create(request, signal);
    await world.pass(MINUTE_MS);
    expect(world.clock.pendingTimers).toBeGreaterThan(0);
    await world.pass(10 * MINUTE_MS);
    expect(world.clock.pendingTimers).toBe(0);
    const calls = world.host.calls.length;
    await world.pass(60 * MINUTE_MS);
    expect(world.host.calls).toHaveLength(calls);
    await provider.get(ID, signal);
    expect(world.clock.pendingTimers).toBeGreaterThan(0);
  });

  test('is over when the machine is deleted, in the middle of it', async () => {
    const world = new KvmWorld().serve({ status: 503 }, 1_000);
    const provider = world.provider();
    await provider.create(request, signal);
    await world.pass(1_000);
    await provider.delete(ID, signal);
    await world.pass(10 * MINUTE_MS);
    expect(world.clock.pendingTimers).toBe(0);
    expect(world.host.domains.size).toBe(0);
    expect(world.host.volumes.size).toBe(0);
  });

  test('does not give the mark back to a machine that was disowned', async () => {
    const world = new KvmWorld().serve();
    const provider = world.provider();
    await provider.create(request, signal);
    await provider.disown(ID, signal);
    const instance = await world.running(provider);
    expect(instance).toMatchObject({ uid: '', installation: '' });
    expect(await provider.listByTag(signal)).toEqual([]);
  });

  test('takes a start whose answer was lost for one', async () => {
    const world = new KvmWorld().serve();
    let lost = 0;
    const provider = world.provider({
      after: (call) => {
        if (call === 'startDomain' && lost++ === 0) throw new Error('the answer was lost');
      },
    });
    await provider.create(request, signal);
    await world.running(provider);
    await world.until(
      () => world.host.domains.get(request.name)?.xml.includes('>started<') || undefined,
    );
  });
});
