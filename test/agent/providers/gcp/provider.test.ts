import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PartialListError } from '#agent/providers/provider.ts';
import { ID, request } from './block.ts';
import { BOOT_MS, type GcpWorld, OPERATION_MS, openGcpWorld } from './world.ts';

const { signal } = new AbortController();
const QUOTA = {
  code: 'QUOTA_EXCEEDED_WITH_DETAILS',
  message: "Quota 'CPUS' exceeded. Limit: 8.0 in region europe-west1.",
  httpStatus: 403,
};
const STOCKOUT = { code: 'ZONE_RESOURCE_POOL_EXHAUSTED', message: 'none left', httpStatus: 503 };
const BAD_IMAGE = { code: 'RESOURCE_NOT_FOUND', message: 'no such image', httpStatus: 404 };
const BROKEN = { code: 'INTERNAL_ERROR', message: 'try again', httpStatus: 500 };

let world: GcpWorld;
beforeEach(async () => {
  world = await openGcpWorld();
});
afterEach(() => world.close());

const project = () => world.compute.project();

describe('create', () => {
  test('is one insert, of an instance that runs a while later', async () => {
    const provider = world.provider();
    expect(await provider.create(request, signal)).toBe(ID);
    expect(world.asked()).toEqual(['POST zones/europe-west1-b/instances']);
    expect(await provider.get(ID, signal)).toMatchObject({ state: 'Provisioning' });
    world.pass(BOOT_MS);
    expect(await provider.get(ID, signal)).toMatchObject({ state: 'Running', ip: '203.0.113.2' });
  });

  test('asks nobody about a request that can never work', async () => {
    const provider = world.provider();
    const call = provider.create({ ...request, placement: {} }, signal);
    await expect(call).rejects.toMatchObject({
      class: 'Permanent',
      message:
        'gcp-eu: create: spec.placement lacks zone, machineType, image: an instance of Compute Engine needs them',
    });
    expect(world.asked()).toEqual([]);
  });

  test('whose answer was lost is the same insert when it is repeated', async () => {
    world.compute.faults.add({ method: 'POST', times: 1, fault: { kind: 'lost' } });
    await expect(world.provider().create(request, signal)).rejects.toMatchObject({
      class: 'Transient',
    });
    expect(await world.provider().create(request, signal)).toBe(ID);
    const ids = world.compute.requests.map(({ target }) => /requestId=([^&]+)/.exec(target)?.[1]);
    expect(new Set(ids).size).toBe(1);
    expect(project().made).toBe(1);
  });

  test('after the API has forgotten the request finds the instance by its name', async () => {
    await world.provider().create(request, signal);
    world.pass(2 * 3_600_000);
    expect(await world.provider().create(request, signal)).toBe(ID);
    expect(await world.provider().create({ ...request, generation: 2 }, signal)).toBe(ID);
    expect(project().made).toBe(1);
  });

  test('takes the place of an instance that died within the memory of the API', async () => {
    await world.provider().create(request, signal);
    for (let deaths = 1; deaths <= 3; deaths++) {
      world.pass(BOOT_MS);
      project().remove(ID);
      expect(await world.provider().create(request, signal)).toBe(ID);
      expect(project().instances.has(ID)).toBe(true);
      expect(project().made).toBe(deaths + 1);
    }
  });

  test('does not take what is still on its way out', async () => {
    const provider = world.provider();
    await provider.create(request, signal);
    world.pass(BOOT_MS);
    await provider.delete(ID, signal);
    await expect(provider.create(request, signal)).rejects.toMatchObject({ class: 'Transient' });
    world.pass(OPERATION_MS);
    expect(await provider.create(request, signal)).toBe(ID);
    expect(project().made).toBe(2);
  });

  test.each([
    [403, 'quotaExceeded', 'QuotaExceeded'],
    [403, 'rateLimitExceeded', 'QuotaExceeded'],
    [403, 'forbidden', 'Permanent'],
    [429, 'rateLimitExceeded', 'QuotaExceeded'],
    [401, 'authError', 'Permanent'],
    [500, 'backendError', 'Transient'],
    [503, 'backendError', 'Transient'],
  ])('that is answered with %i %s is %s', async (status, reason, errorClass) => {
    const message = 'as the API says it';
    world.compute.faults.add({ fault: { kind: 'refuse', status, reason, message } });
    const call = world.provider().create(request, signal);
    await expect(call).rejects.toMatchObject({
      class: errorClass,
      message: `gcp-eu: create: ${message}`,
    });
  });

  test.each([
    ['image', { image: 'projects/debian-cloud/global/images/family/debian-1' }, 'debian-1'],
    ['machine type', { machineType: 'e2-huge' }, 'e2-huge'],
    ['zone', { zone: 'mars-north1-a' }, 'Unknown zone'],
  ])('with an unknown %s is Permanent and says so', async (_what, placement, said) => {
    const wrong = { ...request, placement: { ...request.placement, ...placement } };
    const call = world.provider().create(wrong, signal);
    await expect(call).rejects.toMatchObject({
      class: 'Permanent',
      message: expect.stringContaining(said),
    });
  });

  test('is refused at once when the region has no room', async () => {
    project().quotas.set('europe-west1 IN_USE_ADDRESSES', 0);
    await expect(world.provider().create(request, signal)).rejects.toMatchObject({
      class: 'QuotaExceeded',
      message: expect.stringContaining("Quota 'IN_USE_ADDRESSES' exceeded"),
    });
    const internal = world.provider({ addressMode: 'internal' });
    expect(await internal.create(request, signal)).toBe(ID);
    world.pass(BOOT_MS);
    expect(await internal.get(ID, signal)).toMatchObject({ state: 'Running', ip: '10.132.0.2' });
  });
});

describe('an insert that was accepted and failed', () => {
  test.each([
    [QUOTA, 'QuotaExceeded'],
    [STOCKOUT, 'QuotaExceeded'],
    [BAD_IMAGE, 'Permanent'],
    [BROKEN, 'Transient'],
  ])('%j is told by get, of any process', async (failure, errorClass) => {
    project().insertFailures.push(failure);
    await world.provider().create(request, signal);
    world.pass(OPERATION_MS);
    const call = world.provider().get(ID, signal);
    await expect(call).rejects.toMatchObject({
      class: errorClass,
      neverMade: true,
      message: `gcp-eu: get: ${ID} was not made: ${failure.code}: ${failure.message}`,
    });
  });

  test('is told by a create that comes soon after it, and tried anew by a later one', async () => {
    project().insertFailures.push(STOCKOUT);
    await world.provider().create(request, signal);
    world.pass(OPERATION_MS + 1_000);
    await expect(world.provider().create(request, signal)).rejects.toMatchObject({
      class: 'QuotaExceeded',
      message: expect.stringContaining('ZONE_RESOURCE_POOL_EXHAUSTED'),
    });
    expect(project().made).toBe(0);
    world.pass(60_000);
    expect(await world.provider().create(request, signal)).toBe(ID);
    expect(project().made).toBe(1);
    expect(await world.provider().get(ID, signal)).toMatchObject({ state: 'Provisioning' });
  });

  test('says nothing of an edited Proxy', async () => {
    project().insertFailures.push(BAD_IMAGE);
    await world.provider().create(request, signal);
    world.pass(OPERATION_MS);
    expect(await world.provider().create({ ...request, generation: 2 }, signal)).toBe(ID);
    expect(project().made).toBe(1);
  });
});

describe('get', () => {
  test('of an instance that cannot be seen yet is Transient, not NotFound', async () => {
    project().hiddenMs = 1_000;
    await world.provider().create(request, signal);
    await expect(world.provider().get(ID, signal)).rejects.toMatchObject({
      class: 'Transient',
      neverMade: false,
    });
    world.pass(1_000);
    expect((await world.provider().get(ID, signal)).state).toBe('Provisioning');
  });

  test('of what was deleted is NotFound, and so is what never was', async () => {
    const provider = world.provider();
    await provider.create(request, signal);
    world.pass(BOOT_MS);
    await provider.delete(ID, signal);
    expect(await provider.get(ID, signal)).toMatchObject({ state: 'Stopped', detail: 'STOPPING' });
    world.pass(OPERATION_MS);
    await expect(provider.get(ID, signal)).rejects.toMatchObject({ class: 'NotFound' });
    const other = 'zones/us-east1-b/instances/never';
    await expect(provider.get(other, signal)).rejects.toMatchObject({ class: 'NotFound' });
  });

  test('is not told that an instance is gone by anybody but the API', async () => {
    const provider = world.provider();
    await provider.create(request, signal);
    world.compute.faults.add({ times: 1, fault: { kind: 'html', status: 404 } });
    await expect(provider.get(ID, signal)).rejects.toMatchObject({ class: 'Transient' });
    const elsewhere = world.provider({ project: 'no-such-project' });
    await expect(elsewhere.get(ID, signal)).rejects.toMatchObject({ class: 'Permanent' });
  });

  test.each(['cut', 'html', 'refuse'] as const)(
    'through a fault (%s) is Transient',
    async (kind) => {
      const provider = world.provider();
      await provider.create(request, signal);
      world.compute.faults.add({ fault: { kind, status: 502 } });
      await expect(provider.get(ID, signal)).rejects.toMatchObject({ class: 'Transient' });
    },
  );

  test('ends with its signal though the answer is slow', async () => {
    const provider = world.provider();
    await provider.create(request, signal);
    const held = Promise.withResolvers<void>();
    world.compute.faults.add({ fault: { kind: 'slow', release: held.promise } });
    const stop = AbortSignal.timeout(50);
    await expect(provider.get(ID, stop)).rejects.toMatchObject({ class: 'Transient' });
    held.resolve();
  });

  test('asks once: nothing is retried behind the controller’s back', async () => {
    world.compute.faults.add({ fault: { kind: 'refuse', status: 503 } });
    const provider = world.provider();
    await expect(provider.get(ID, signal)).rejects.toMatchObject({ class: 'Transient' });
    expect(world.asked()).toEqual([`GET ${ID}`]);
  });
});

describe('delete', () => {
  test('looks first, leaves alone what is not ours, and is asked again while it runs', async () => {
    const provider = world.provider();
    const theirs = 'zones/europe-west1-b/instances/theirs';
    project().put('europe-west1-b', 'theirs', { name: 'theirs', labels: { app: 'x' } });
    await expect(provider.delete(theirs, signal)).rejects.toMatchObject({ class: 'Permanent' });
    await provider.create(request, signal);
    world.asked();
    await provider.delete(ID, signal);
    await provider.delete(ID, signal);
    expect(world.asked()).toEqual([`GET ${ID}`, `DELETE ${ID}`, `GET ${ID}`, `DELETE ${ID}`]);
    world.pass(OPERATION_MS);
    await provider.delete(ID, signal);
    expect(project().instances.has(ID)).toBe(false);
    expect(project().instances.has(theirs)).toBe(true);
  });
});

describe('disown', () => {
  test('waits until the labels are off, and keeps the others', async () => {
    const provider = world.provider();
    await provider.create(request, signal);
    const made = project().instances.get(ID);
    if (made !== undefined) made.labels = { ...made.labels, team: 'crawl' };
    world.asked();
    await provider.disown(ID, signal);
    expect(world.asked().map((line) => line.replace(/operation-[^/]+/, 'OP'))).toEqual([
      `GET ${ID}`,
      `POST ${ID}/setLabels`,
      'POST zones/europe-west1-b/operations/OP/wait',
    ]);
    expect(project().instances.get(ID)?.labels).toEqual({ team: 'crawl' });
    expect(await provider.listByTag(signal)).toEqual([]);
  });

  test('that meets somebody else’s change is Transient', async () => {
    const provider = world.provider();
    await provider.create(request, signal);
    world.compute.faults.add({
      path: /setLabels$/,
      fault: { kind: 'refuse', status: 412, reason: 'conditionNotMet' },
    });
    await expect(provider.disown(ID, signal)).rejects.toMatchObject({ class: 'Transient' });
  });
});

describe('the list', () => {
  const fill = async (count: number) => {
    const zones = ['europe-west1-b', 'europe-west1-c', 'us-east1-b'];
    for (let nth = 0; nth < count; nth++) {
      const zone = zones[nth % zones.length] ?? '';
      const placement = { ...request.placement, zone };
      const own = { name: `proxy-${nth}`, uid: `uid-${nth}` };
      await world.provider().create({ ...request, ...own, placement }, signal);
    }
  };

  test('goes through all zones and pages, and takes what is marked alone', async () => {
    await fill(6);
    project().put('us-east1-b', 'theirs', { name: 'theirs', labels: { app: 'x' } });
    expect(project().made).toBe(6);
    const ids = (await world.provider().listByTag(signal)).map(({ id }) => id);
    expect(ids.sort()).toEqual(
      [...project().instances.keys()].filter((id) => !/theirs/.test(id)).sort(),
    );
    const { target } = world.compute.requests.at(-1) ?? { target: '' };
    const query = new URLSearchParams(target.slice(target.indexOf('?')));
    expect(query.get('returnPartialSuccess')).toBe('true');
    expect(query.get('filter')).toBe('labels.proxy-operator-managed=true');
  });

  test('puts pages together, on each of which every zone stands', async () => {
    project().pageSizeMax = 2;
    await fill(7);
    expect(await world.provider().listByTag(signal)).toHaveLength(7);
    expect(world.asked().filter((line) => line.includes('aggregated'))).toHaveLength(4);
  });

  test('without a zone is an error that holds the rest, and is logged', async () => {
    await fill(3);
    project().unreachable.add('us-east1-b');
    const error = await world
      .provider()
      .listByTag(signal)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PartialListError);
    expect(error).toMatchObject({ class: 'Transient', unread: ['zones/us-east1-b'] });
    const { instances } = error as PartialListError;
    expect(instances.map(({ id }) => id)).toEqual([
      'zones/europe-west1-b/instances/proxy-0',
      'zones/europe-west1-c/instances/proxy-1',
    ]);
    expect(world.lines.some((line) => line.includes('zones/us-east1-b'))).toBe(true);
  });

  test('without any zone is an error, not empty', async () => {
    for (const zone of ['europe-west1-b', 'europe-west1-c', 'us-east1-b']) {
      project().unreachable.add(zone);
    }
    const error = await world
      .provider()
      .listByTag(signal)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(PartialListError);
    expect(error).toMatchObject({ instances: [] });
  });
});

describe('the firewall rule', () => {
  const firewall = { sourceRanges: ['10.0.0.0/8'] };
  const rules = () => [...project().firewalls.values()];

  test('is made with the first instance, once, and put right when it was changed', async () => {
    const provider = world.provider({ firewall });
    await provider.create(request, signal);
    await provider.create(request, signal);
    expect(rules()).toHaveLength(1);
    expect(rules()[0]).toMatchObject({
      sourceRanges: ['10.0.0.0/8'],
      network: 'global/networks/default',
    });
    const wider = world.provider({
      firewall: { sourceRanges: ['0.0.0.0/0'], ports: [3128, 8080] },
    });
    await wider.create(request, signal);
    expect(rules()).toHaveLength(1);
    expect(rules()[0]).toMatchObject({
      sourceRanges: ['0.0.0.0/0'],
      allowed: [{ IPProtocol: 'tcp', ports: ['3128', '8080'] }],
    });
  });

  test('of somebody else under the name is left alone, and nothing is made', async () => {
    await world.provider({ firewall }).create(request, signal);
    const [rule] = rules();
    project().firewalls.set(String(rule?.['name']), { ...rule, description: 'mine' });
    const second = { ...request, name: 'proxy-b' };
    const call = world.provider({ firewall }).create(second, signal);
    await expect(call).rejects.toMatchObject({ class: 'Permanent' });
    expect(rules()[0]).toMatchObject({ description: 'mine' });
    expect(project().made).toBe(1);
  });

  test('is not touched without a block for it', async () => {
    await world.provider().create(request, signal);
    expect(world.asked().filter((line) => line.includes('firewalls'))).toEqual([]);
  });
});

describe('check', () => {
  test('tells the quotas of regions in use', async () => {
    project().quotas.set('europe-west1 IN_USE_ADDRESSES', 8);
    await world.provider().create(request, signal);
    const [status] = await world.provider().check(signal);
    expect(status).toMatchObject({ name: 'crawl-test', ready: true, reason: 'Reachable' });
    expect(status?.details).toEqual({
      'europe-west1 IN_USE_ADDRESSES': '1 of 8 in use',
      'europe-west1 CPUS': '2 of 1000000 in use',
      'europe-west1 INSTANCES': '1 of 1000000 in use',
    });
  });

  test.each([
    [401, 'authError', 'Unauthorized'],
    [403, 'forbidden', 'Forbidden'],
    [403, 'rateLimitExceeded', 'APIError'],
    [429, 'rateLimitExceeded', 'APIError'],
    [500, 'backendError', 'APIError'],
  ])('of a project that answers %i %s says %s', async (status, reason, told) => {
    world.compute.faults.add({ fault: { kind: 'refuse', status, reason } });
    const [target] = await world.provider().check(signal);
    expect(target).toMatchObject({ ready: false, reason: told });
  });

  test('says which zones cannot be read, and does without quotas that are refused', async () => {
    project().unreachable.add('us-east1-b');
    world.compute.faults.add({ path: /regions$/, fault: { kind: 'refuse', status: 403 } });
    const [target] = await world.provider().check(signal);
    expect(target).toMatchObject({ ready: true });
    expect(target?.message).toContain('zones/us-east1-b');
    expect(target).not.toHaveProperty('details');
  });
});

test('providers of two projects never meet', async () => {
  await world.close();
  world = await openGcpWorld({ projects: ['crawl-a', 'crawl-b'] });
  const a = world.provider({ project: 'crawl-a' }, 'a');
  const b = world.provider({ project: 'crawl-b' }, 'b');
  await Promise.all([a.create(request, signal), b.create(request, signal)]);
  await b.delete(ID, signal);
  expect(await a.listByTag(signal)).toMatchObject([{ id: ID, detail: 'PROVISIONING' }]);
  expect(await b.listByTag(signal)).toMatchObject([{ id: ID, detail: 'STOPPING' }]);
  const bodies = world.compute.requests.map(({ target }) => target.split('/')[2]);
  expect(new Set(bodies)).toEqual(new Set(['crawl-a', 'crawl-b']));
});

test('user-data is in no error, whatever the API or the client quotes', async () => {
  const cloudInit = '#cloud-config\npassword: "sentinel-of-user-data"\n';
  const quoted = JSON.stringify({ value: cloudInit });
  const said: unknown[] = [];
  for (const message of [cloudInit, quoted]) {
    const fault = { kind: 'refuse', status: 400, reason: 'invalid', message } as const;
    world.compute.faults.add({ method: 'POST', times: 1, fault });
    const call = world.provider().create({ ...request, cloudInit }, signal);
    said.push(await call.catch((error: unknown) => error));
  }
  said.push(world.lines);
  expect(said[0]).toMatchObject({ class: 'Permanent' });
  expect(inspect(said, { depth: 20, showHidden: true })).not.toContain('sentinel-of-user-data');
});

test('a provider that was closed makes no more calls', async () => {
  const provider = world.provider();
  await provider.create(request, signal);
  world.asked();
  await provider.close?.();
  await expect(provider.get(ID, signal)).rejects.toMatchObject({ class: 'Transient' });
  expect(world.asked()).toEqual([]);
});
