/** The fake of Compute Engine refuses what the API refuses: a provider that leans on less is found. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseFilter } from '#test/fakes/compute/filter.ts';
import { type FakeCompute, IMAGE, PROJECT, startFakeCompute } from '#test/fakes/compute/server.ts';

const ZONE = 'europe-west1-b';
let compute: FakeCompute;
beforeAll(async () => {
  compute = await startFakeCompute({ token: 'good' });
});
afterAll(() => compute.close());

async function ask(method: string, path: string, body?: object, token = 'good') {
  const response = await fetch(`${compute.endpoint}/compute/v1/projects/${PROJECT}/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as {
    status?: string;
    error?: { errors: { reason: string; message: string }[] };
  };
  const [error] = answer.error?.errors ?? [];
  return { status: response.status, reason: error?.reason, message: error?.message, answer };
}

const disk = { boot: true, autoDelete: true, initializeParams: { sourceImage: IMAGE } };
const instance = {
  name: 'good',
  machineType: `zones/${ZONE}/machineTypes/e2-micro`,
  disks: [disk],
  networkInterfaces: [{ network: 'global/networks/default' }],
};
const insert = (over: object, query = '') =>
  ask('POST', `zones/${ZONE}/instances${query}`, { ...instance, ...over });

describe('an insert is refused', () => {
  test.each<[string, object, number, string]>([
    ['with a name in upper case', { name: 'Bad' }, 400, 'invalid'],
    ['with a name that is too long', { name: 'a'.repeat(64) }, 400, 'invalid'],
    ['without a name', { name: undefined }, 400, 'required'],
    ['with a field that nobody knows', { colour: 'red' }, 400, 'badRequest'],
    ['with such a field in a disk', { disks: [{ ...disk, colour: 1 }] }, 400, 'badRequest'],
    ['without a boot disk', { disks: [] }, 400, 'invalid'],
    ['with a disk that boots nothing', { disks: [{ boot: true }] }, 400, 'required'],
    ['with a label in upper case', { labels: { a: 'B' } }, 400, 'invalid'],
    ['with a label that holds a dot', { labels: { a: 'b.c' } }, 400, 'invalid'],
    ['with a key of a label in upper case', { labels: { A: 'b' } }, 400, 'invalid'],
    ['without a machine type', { machineType: undefined }, 400, 'required'],
    [
      'with an unknown machine type',
      { machineType: `zones/${ZONE}/machineTypes/e9` },
      400,
      'invalid',
    ],
    [
      'with the machine type of another zone',
      { machineType: 'zones/us-east1-b/machineTypes/e2-micro' },
      400,
      'invalid',
    ],
    ['without an interface', { networkInterfaces: [] }, 400, 'required'],
    [
      'in an unknown network',
      { networkInterfaces: [{ network: 'global/networks/x' }] },
      404,
      'notFound',
    ],
    [
      'of an unknown image',
      { disks: [{ ...disk, initializeParams: { sourceImage: 'global/images/x' } }] },
      404,
      'notFound',
    ],
    ['with a tag that is no name', { tags: { items: ['Bad'] } }, 400, 'invalid'],
    [
      'with user-data that is too long',
      { metadata: { items: [{ key: 'user-data', value: 'x'.repeat(262_145) }] } },
      413,
      'uploadTooLarge',
    ],
  ])('%s', async (_what, over, status, reason) => {
    expect(await insert(over)).toMatchObject({ status, reason });
    expect(compute.project().instances.size).toBe(0);
  });

  test('with a request id that is no UUID, a parameter that it has not, and in no zone', async () => {
    expect(await insert({}, '?requestId=1')).toMatchObject({ status: 400, reason: 'invalid' });
    expect(await insert({}, '?colour=red')).toMatchObject({ status: 400 });
    const elsewhere = await ask('POST', 'zones/mars-a/instances', instance);
    expect(elsewhere).toMatchObject({ status: 400, reason: 'invalid' });
    expect(elsewhere.message).toContain('Unknown zone');
  });
});

test('credentials are asked for, and other projects are not there', async () => {
  expect(await ask('GET', 'regions', undefined, 'bad')).toMatchObject({ status: 401 });
  const url = `${compute.endpoint}/compute/v1/projects/other/regions`;
  const response = await fetch(url, { headers: { authorization: 'Bearer good' } });
  expect(response.status).toBe(404);
});

test('a list fails as a whole when a zone is away, unless partial success is asked for', async () => {
  compute.project().unreachable.add(ZONE);
  expect(await ask('GET', 'aggregated/instances')).toMatchObject({ status: 503 });
  const partial = await ask('GET', 'aggregated/instances?returnPartialSuccess=true');
  expect(partial.status).toBe(200);
  expect(JSON.stringify(partial.answer)).toContain('UNREACHABLE');
  compute.project().unreachable.clear();
});

describe('a filter', () => {
  const resource = { name: 'proxy-a', labels: { team: 'crawl' }, status: 'RUNNING' };

  test.each([
    ['', true],
    ['labels.team=crawl', true],
    ['labels.team=other', false],
    ['labels.none=x', false],
    ['status!=RUNNING', false],
    ['(labels.team=crawl) (status=RUNNING)', true],
    ['(labels.team=crawl) (status=STOPPED)', false],
    ['name eq proxy-.*', true],
    ['name eq proxy', false],
    ['name ne "proxy"', true],
  ])('%j: %s', (filter, matches) => {
    expect(parseFilter(filter)(resource)).toBe(matches);
  });

  test.each(['labels.team', '(name eq a) (status=b)', 'name ~ x', '= x'])(
    '%j is refused',
    (text) => {
      expect(() => parseFilter(text)).toThrow('Invalid list filter');
    },
  );
});
