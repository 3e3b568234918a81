import { describe, expect, test } from 'vitest';
import { instanceName } from '#agent/providers/naming.ts';
import { FINALIZER, SPEC_HASH_ANNOTATION } from '#shared/crd/names.ts';
import { KEY, managed, World } from './harness.ts';

async function running(spec: object = {}): Promise<World> {
  const world = new World(managed(spec));
  await world.settle();
  world.healthy();
  await world.pass();
  expect(world.status.phase).toBe('Ready');
  world.events.length = 0;
  world.writes.length = 0;
  world.provider.requests.length = 0;
  return world;
}

describe('a new managed proxy', () => {
  test('gets finalizer and intent before its machine, and its machine before its status', async () => {
    const world = new World(managed());
    const order: string[] = [];
    world.around = (what, call) => {
      order.push(what);
      return call();
    };
    expect(await world.pass()).toEqual({ requeueAfterMs: 1000 });
    expect(order).toEqual(['addFinalizer', 'setAnnotation', 'create', 'patchStatus']);
    expect(world.proxy?.metadata.finalizers).toEqual([FINALIZER]);
    expect(world.proxy?.metadata.annotations[SPEC_HASH_ANNOTATION]).toMatch(/^[0-9a-f]{32}$/);
    expect(world.status).toMatchObject({
      phase: 'Provisioning',
      observedGeneration: 1,
      providerID: `zones/a/${instanceName('uid-1')}`,
    });
    expect(world.condition('Provisioned')).toBe('False/Provisioning');
    expect(world.eventReasons).toEqual(['Created']);
  });

  test('is asked about every second at first, and ready as soon as a probe says so', async () => {
    const world = new World(managed({ port: 8080 }));
    await world.passes(2);
    expect(world.status).toMatchObject({ phase: 'Provisioning', ip: '10.0.0.1', port: 8080 });
    expect(world.condition('Provisioned')).toBe('True/Created');
    expect(world.condition('Healthy')).toBe('Unknown/NotProbed');
    world.healthy();
    expect(await world.pass()).toEqual({ requeueAfterMs: 30_000 });
    expect(world.status).toMatchObject({
      phase: 'Ready',
      latencyMillis: 12,
      egressIP: '198.51.100.7',
    });
    expect(world.condition('Ready')).toBe('True/Ready');
  });

  test('hands the provider everything that the machine is made from', async () => {
    const world = new World(
      managed({ port: 4000, placement: { zone: 'z', image: 'i' }, cloudInit: { inline: '#c' } }),
    );
    await world.pass();
    expect(world.provider.only.request).toEqual({
      name: instanceName('uid-1'),
      uid: 'uid-1',
      installation: 'here',
      namespace: 'crawl',
      proxyName: 'one',
      placement: { zone: 'z', image: 'i' },
      port: 4000,
      generation: 1,
      cloudInit: '#c',
    });
  });

  test('writes nothing when nothing changed', async () => {
    const world = await running();
    await world.passes(5);
    expect(world.writes).toEqual([]);
  });
});

describe('an edit', () => {
  test.each([
    ['the placement', { placement: { zone: 'b' } }],
    ['the port', { port: 9000 }],
    ['the user-data', { cloudInit: { inline: 'new' } }],
  ])('of %s replaces the machine, one at a time', async (_what, spec) => {
    const world = await running();
    world.edit(spec);
    await world.pass();
    expect(world.status.phase).toBe('Replacing');
    expect(world.status.ip).toBeUndefined();
    expect(world.condition('Healthy')).toBe('Unknown/Replacing');
    await world.settle();
    expect(world.provider.made).toBe(2);
    expect(world.provider.only.request).toMatchObject(
      'port' in spec ? { port: 9000 } : 'placement' in spec ? spec : { cloudInit: 'new' },
    );
    expect(world.eventReasons).toEqual(['Replacing', 'Created', 'Running']);
    const created = world.provider.requests.findIndex((each) => each.startsWith('create'));
    expect(world.provider.requests[created - 1]).toMatch(/^get/);
  });

  test.each([
    ['attributes', { attributes: { region: 'eu' } }],
    ['limits', { maxLeases: 3 }],
    ['cordon', { leasable: false }],
    ['drain time', { drainSeconds: 5 }],
  ])('of %s keeps the machine', async (_what, spec) => {
    const world = await running();
    world.edit(spec);
    await world.settle();
    expect(world.provider.made).toBe(1);
    expect(world.status.observedGeneration).toBe(2);
  });

  test('that is taken back during the replacement still ends with one running machine', async () => {
    const world = await running();
    world.edit({ port: 9000 });
    await world.pass();
    world.edit({ port: 3128 });
    await world.settle();
    expect(world.provider.only.request.port).toBe(3128);
    expect(world.condition('Provisioned')).toBe('True/Created');
  });

  test('is not begun with a second machine for one odd NotFound', async () => {
    const world = await running();
    world.provider.failNext('get', 'NotFound');
    world.edit({ placement: { zone: 'b' } });
    await world.settle();
    expect(world.provider.machines.size).toBe(1);
    expect(world.provider.only.id).toMatch(/^zones\/b\//);
  });

  test('rotating a cloud-init Secret replaces the machine', async () => {
    const world = new World(managed({ cloudInit: { secretRef: { name: 's' } } }));
    world.secrets.set('crawl/s', { data: { 'user-data': 'one' } });
    await world.settle();
    world.secrets.set('crawl/s', { data: { 'user-data': 'two' } });
    await world.settle();
    expect(world.provider.made).toBe(2);
    expect(world.provider.only.request.cloudInit).toBe('two');
  });
});

describe('a dead machine', () => {
  test.each(['Stopped', 'Terminated'] as const)(
    'that is %s is shown at once and replaced when seen again a second later',
    async (state) => {
      const world = await running();
      world.provider.only.forced = state;
      expect(await world.pass()).toEqual({ requeueAfterMs: 1000 });
      expect(world.status.phase).toBe('Unhealthy');
      expect(world.condition('Healthy')).toBe(`False/Instance${state}`);
      expect(world.condition('Provisioned')).toBe('True/Created');
      await world.clock.advance(1000);
      await world.pass();
      expect(world.condition('Provisioned')).toBe('False/Replacing');
      await world.settle();
      expect(world.status.ip).toBe('10.0.0.2');
      expect(world.eventReasons).toEqual([`Instance${state}`, 'Replacing', 'Created', 'Running']);
    },
  );

  test('is not destroyed for looking twice in the same moment', async () => {
    const world = await running();
    world.provider.only.forced = 'Terminated';
    await world.pass();
    await world.clock.advance(10);
    expect(await world.pass()).toEqual({ requeueAfterMs: 990 });
    expect(world.provider.requests.filter((each) => each.startsWith('delete'))).toEqual([]);
  });

  test('that was called dead by mistake goes on', async () => {
    const world = await running();
    world.provider.only.forced = 'Stopped';
    await world.passes(1);
    delete world.provider.only.forced;
    await world.passes(1);
    expect(world.status.phase).toBe('Ready');
    world.provider.only.forced = 'Stopped';
    await world.pass();
    expect(world.provider.made).toBe(1);
    expect(world.condition('Provisioned')).toBe('True/Created');
  });

  test('is looked at twice again after a restart of the agent', async () => {
    const world = await running();
    world.provider.only.forced = 'Terminated';
    await world.passes(1);
    world.restart();
    await world.pass();
    expect(world.condition('Provisioned')).toBe('True/Created');
  });

  test('that vanished is made again, and an event says so', async () => {
    const world = await running();
    world.provider.machines.clear();
    await world.passes(1);
    expect(world.condition('Healthy')).toBe('False/InstanceGone');
    expect(world.status.phase).toBe('Unhealthy');
    await world.pass();
    expect(world.status.providerID).toBeUndefined();
    expect(world.status.ip).toBeUndefined();
    await world.settle();
    expect(world.provider.made).toBe(2);
    expect(world.eventReasons).toEqual(['InstanceGone', 'Replacing', 'Created', 'Running']);
  });

  test('that is said once to be gone, by mistake, goes on', async () => {
    const world = await running();
    world.provider.failNext('get', 'NotFound');
    await world.passes(1);
    await world.settle();
    expect(world.status.phase).toBe('Ready');
    expect(world.provider.made).toBe(1);
    expect(world.condition('Provisioned')).toBe('True/Created');
  });

  test('in a state that nobody knows is told in the words of its provider', async () => {
    const world = await running();
    world.provider.only.unknown = 'queued';
    await world.passes(1);
    expect(world.condition('Healthy')).toBe('False/InstanceStopped');
    expect(world.message('Healthy')).toMatch(/is Stopped \(queued\)$/);
    expect(world.provider.made).toBe(1);
    await world.pass();
    expect(world.message('Provisioned')).toMatch(/is Stopped \(queued\)$/);
  });

  test('whose successors die as well is replaced ever more slowly', async () => {
    const world = new World(managed());
    const madeAtMs: number[] = [];
    let passes = 0;
    while (world.clock.now() < Date.UTC(2026, 0, 1) + 600_000) {
      for (const machine of world.provider.machines.values()) machine.forced = 'Terminated';
      const { requeueAfterMs } = await world.pass();
      if (world.provider.made > madeAtMs.length) madeAtMs.push(world.clock.now());
      await world.clock.advance(requeueAfterMs ?? 0);
      passes++;
    }
    expect(world.provider.made).toBeLessThan(45);
    const pausesMs = madeAtMs.slice(1).map((atMs, nth) => atMs - (madeAtMs[nth] ?? 0));
    expect(pausesMs.length).toBeGreaterThan(5);
    expect(pausesMs).toEqual([...pausesMs].sort((a, b) => a - b));
    expect(pausesMs.at(-1)).toBeGreaterThan(2 * (pausesMs[0] ?? 0));
    expect(passes).toBeLessThan(250);
  });
});

describe('failures of the provider', () => {
  test('quota is waited for, quietly and without backoff', async () => {
    const world = new World(managed());
    world.provider.failNext('create', 'QuotaExceeded', 2);
    expect(await world.pass()).toEqual({ requeueAfterMs: 300_000 });
    expect(world.status.phase).toBe('Pending');
    expect(world.condition('Provisioned')).toBe('False/QuotaExceeded');
    await world.clock.advance(300_000);
    await world.pass();
    expect(world.eventReasons).toEqual(['QuotaExceeded']);
    await world.clock.advance(300_000);
    await world.settle();
    expect(world.condition('Provisioned')).toBe('True/Created');
  });

  test('a permanent one latches until the spec is edited', async () => {
    const world = new World(managed());
    world.provider.failNext('create', 'Permanent');
    expect(await world.pass()).toEqual({});
    expect(world.status.phase).toBe('Failed');
    expect(world.condition('Ready')).toBe('False/PermanentError');
    const asked = world.provider.requests.length;
    await world.passes(3);
    world.restart();
    await world.passes(3);
    expect(world.provider.requests).toHaveLength(asked);
    world.edit({ maxLeases: 4 });
    await world.settle();
    expect(world.condition('Provisioned')).toBe('True/Created');
  });

  test('a transient one is thrown for backoff; what is known stays', async () => {
    const world = await running();
    world.provider.failNext('get', 'Transient');
    await expect(world.pass()).rejects.toThrow(/Transient/);
    expect(world.status.phase).toBe('Ready');
    expect(world.writes).toEqual([]);
  });

  test('that come and go are not written at each turn', async () => {
    const world = new World(managed());
    await world.pass();
    world.writes.length = 0;
    world.provider.only.forced = 'Provisioning';
    for (let turn = 0; turn < 10; turn++) {
      world.provider.failNext('get', 'Transient');
      await expect(world.pass()).rejects.toThrow();
      await world.clock.advance(100);
      await world.pass();
      await world.clock.advance(1000);
    }
    expect(world.writes).toEqual([]);
  });

  test('a transient one at the first create is told once', async () => {
    const world = new World(managed());
    world.provider.failNext('create', 'Transient', 3);
    for (let attempt = 0; attempt < 3; attempt++) {
      await expect(world.pass()).rejects.toThrow();
      await world.clock.advance(1000);
    }
    expect(world.condition('Provisioned')).toBe('False/ProviderUnavailable');
    expect(world.writes).toEqual(['addFinalizer', 'setAnnotation', 'patchStatus']);
    expect(world.eventReasons).toEqual(['ProviderUnavailable']);
  });

  test('an unknown provider is Failed, and healed by configuring it', async () => {
    const world = new World(managed({ provider: 'later' }));
    await world.pass();
    expect(world.status.phase).toBe('Failed');
    expect(world.condition('Provisioned')).toBe('False/PermanentError');
    expect(world.proxy?.metadata.finalizers).toEqual([]);
    world.providers = { later: world.provider };
    await world.settle();
    expect(world.condition('Provisioned')).toBe('True/Created');
  });

  test('a stop of the agent is not written down as a failure', async () => {
    const world = new World(managed());
    const stop = new AbortController();
    world.around = (what, call) => {
      if (what === 'create') stop.abort(new Error('stopping'));
      return call();
    };
    await expect(world.pass(stop.signal)).rejects.toThrow();
    expect(world.writes).not.toContain('patchStatus');
  });
});

describe('user-data from a Secret', () => {
  test.each([
    ['is missing', undefined, /does not exist or lacks the label/],
    ['lacks the key', { data: { other: 'x' } }, /has no key "user-data"/],
  ])('that %s is waited for', async (_what, secret, message) => {
    const world = new World(managed({ cloudInit: { secretRef: { name: 's' } } }));
    if (secret !== undefined) world.secrets.set('crawl/s', secret);
    expect(await world.pass()).toEqual({ requeueAfterMs: 30_000 });
    expect(world.status.phase).toBe('Pending');
    expect(world.condition('Provisioned')).toBe('False/CloudInitError');
    expect(world.status.conditions?.[0]?.message).toMatch(message);
    expect(world.provider.made).toBe(0);
    world.secrets.set('crawl/s', { data: { 'user-data': 'x' } });
    await world.settle();
    expect(world.condition('Provisioned')).toBe('True/Created');
  });

  test('that vanishes leaves a running machine alone, until that one dies', async () => {
    const world = new World(managed({ cloudInit: { secretRef: { name: 's' } } }));
    world.secrets.set('crawl/s', { data: { 'user-data': 'x' } });
    await world.settle();
    world.secrets.clear();
    await world.settle();
    expect(world.condition('Provisioned')).toBe('True/Created');
    world.provider.only.forced = 'Terminated';
    await world.settle();
    expect(world.condition('Provisioned')).toBe('False/CloudInitError');
    expect(world.provider.machines.size).toBe(0);
  });
});

test('a paused proxy is not acted on, but its health is shown', async () => {
  const world = await running();
  world.edit({ paused: true, port: 9999 });
  world.provider.machines.clear();
  const probedAtMs = world.clock.now();
  const verdict = { healthy: false, reason: 'Timeout', message: 'm', probedAtMs };
  world.verdicts.set(KEY, verdict);
  expect(await world.pass()).toEqual({});
  expect(world.provider.requests).toEqual([]);
  expect(world.status.phase).toBe('Unhealthy');
  expect(world.status.observedGeneration).toBe(1);
  world.delete();
  await world.passes(2);
  expect(world.status.phase).toBe('Deleting');
  expect(world.status.conditions?.at(-1)?.message).toMatch(/paused/);
  world.edit({ paused: false });
  await world.settle();
  expect(world.proxy).toBeUndefined();
});

test('a machine whose annotation was stripped is adopted, not replaced', async () => {
  const world = await running();
  world.annotate({});
  expect(await world.pass()).toEqual({ requeueAfterMs: 1000 });
  await world.settle();
  expect(world.provider.made).toBe(1);
  expect(world.eventReasons).toEqual(['Adopted']);
});
