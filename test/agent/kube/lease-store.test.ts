import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { createKubeClient, type KubeClient, type KubeRequest } from '#agent/kube/client.ts';
import { createLeaseStore, LEASE_NAME, TERM_ANNOTATION } from '#agent/kube/lease-store.ts';
import { untilAborted } from '#agent/runtime/deadline.ts';
import { type ElectionObserver, runElection } from '#agent/runtime/leader-election.ts';
import type { Leadership } from '#agent/runtime/leadership.ts';
import type { LeaseRecord, StoredLease } from '#agent/runtime/lease.ts';
import { systemClock as clock } from '#shared/clock.ts';
import {
  startTestServer,
  type TestServer,
} from '#test/deploy/local/control-plane/http/api-client.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const PATH = `${LEASES}/${LEASE_NAME}`;
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const RECORD: LeaseRecord = {
  holder: 'a',
  leaseDurationSeconds: 15,
  acquiredAtMs: Date.UTC(2026, 0, 1, 2, 3, 4, 50),
  renewedAtMs: Date.UTC(2026, 0, 1, 2, 3, 5),
  transitions: 2,
  term: 1_767_225_600,
};

let server: TestServer;
let client: KubeClient;
const sent: KubeRequest[] = [];
const { signal } = new AbortController();

beforeAll(async () => {
  server = await startTestServer();
  const { url, caPem, adminToken } = server.controlPlane;
  const credentials = { headers: { authorization: `Bearer ${adminToken}` }, tls: { ca: caPem } };
  client = createKubeClient({
    access: { server: url, credentials: async () => credentials, refresh() {} },
    clock,
    userAgent: 'test',
  });
});
afterAll(async () => {
  await client.close();
  await server[Symbol.asyncDispose]();
});

beforeEach(() => void sent.splice(0));
afterEach(() => server.call(PATH, { method: 'DELETE' }));

function openStore(namespace = 'default') {
  const recording: KubeClient = {
    ...client,
    request(request, stop) {
      sent.push(request);
      return client.request(request, stop);
    },
  };
  return createLeaseStore({ client: recording, namespace });
}

function stored(result: StoredLease | 'conflict' | undefined): StoredLease {
  if (result === undefined || result === 'conflict') throw new Error(`not stored: ${result}`);
  return result;
}

test('there is nothing to read before somebody has led', async () => {
  expect(await openStore().read(signal)).toBeUndefined();
});

test('a record is read as it was created and replaced', async () => {
  const store = openStore();
  const first = stored(await store.create(RECORD, signal));
  expect(first.record).toEqual(RECORD);
  expect(await store.read(signal)).toEqual(first);
  const next = { ...RECORD, holder: '', leaseDurationSeconds: 1, transitions: 3, term: 9 };
  const second = stored(await store.replace(first.version, next, signal));
  expect(second.record).toEqual(next);
  expect(second.version).not.toBe(first.version);
  expect(await store.read(signal)).toEqual(second);
});

test('the Lease is one that kubectl and client-go read', async () => {
  await openStore().create(RECORD, signal);
  expect((await server.call(PATH)).json).toMatchObject({
    metadata: { name: 'egress-agent', annotations: { 'crawl.example.com/term': '1767225600' } },
    spec: {
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T02:03:04.050000Z',
      renewTime: '2026-01-01T02:03:05.000000Z',
      leaseTransitions: 2,
    },
  });
});

test('every time that is written has six fractional digits', async () => {
  const store = openStore();
  const { version } = stored(await store.create(RECORD, signal));
  await store.replace(version, { ...RECORD, renewedAtMs: RECORD.renewedAtMs + 1 }, signal);
  const bodies = sent.map(({ body }) => body);
  const times = { acquireTime: expect.stringMatching(MICRO_TIME) };
  expect(bodies).toHaveLength(2);
  for (const body of bodies) {
    const renewTime = expect.stringMatching(MICRO_TIME);
    expect(body).toMatchObject({ spec: { ...times, renewTime } });
  }
});

test('of two that replace the same version one gets a conflict and changes nothing', async () => {
  const [one, other] = [openStore(), openStore()];
  const { version } = stored(await one.create(RECORD, signal));
  const results = await Promise.all([
    one.replace(version, { ...RECORD, holder: 'one' }, signal),
    other.replace(version, { ...RECORD, holder: 'other' }, signal),
  ]);
  const winner = results.filter((result) => result !== 'conflict');
  expect(winner).toHaveLength(1);
  expect(await one.read(signal)).toEqual(winner[0]);
  expect(await one.replace(version, RECORD, signal)).toBe('conflict');
});

test('of two that create it one gets a conflict', async () => {
  const results = await Promise.all(
    ['one', 'other'].map((holder) => openStore().create({ ...RECORD, holder }, signal)),
  );
  expect(results.filter((result) => result === 'conflict')).toHaveLength(1);
});

test('a Lease that was deleted, or deleted and made again, is a conflict', async () => {
  const store = openStore();
  const { version } = stored(await store.create(RECORD, signal));
  await server.call(PATH, { method: 'DELETE' });
  expect(await store.replace(version, RECORD, signal)).toBe('conflict');
  await store.create(RECORD, signal);
  expect(await store.replace(version, RECORD, signal)).toBe('conflict');
});

test('what others wrote on the Lease stays', async () => {
  const store = openStore();
  await store.create(RECORD, signal);
  await server.call(PATH, {
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: { metadata: { labels: { team: 'crawl' }, annotations: { note: 'x' } } },
  });
  const { version } = stored(await store.read(signal));
  await store.replace(version, { ...RECORD, holder: 'b' }, signal);
  expect((await server.call(PATH)).json).toMatchObject({
    metadata: {
      labels: { team: 'crawl' },
      annotations: { note: 'x', [TERM_ANNOTATION]: '1767225600' },
    },
    spec: { holderIdentity: 'b' },
  });
});

test.each([
  ['empty', {}, {}],
  ['of a garbled term', { metadata: { annotations: { [TERM_ANNOTATION]: '12x' } } }, {}],
  ['of a negative term', { metadata: { annotations: { [TERM_ANNOTATION]: '-4' } } }, {}],
  [
    'held',
    { spec: { holderIdentity: 'z', leaseDurationSeconds: 20 } },
    { holder: 'z', leaseDurationSeconds: 20 },
  ],
])('a Lease by hand that is %s is one of no term', async (_, fields: object, expected) => {
  const metadata = { name: LEASE_NAME, ...('metadata' in fields ? Object(fields.metadata) : {}) };
  const made = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', ...fields, metadata };
  const answer = await server.call(LEASES, { method: 'POST', body: JSON.stringify(made) });
  expect(answer.status).toBe(201);
  const { record } = stored(await openStore().read(signal));
  const none = { holder: '', leaseDurationSeconds: 0, acquiredAtMs: 0, renewedAtMs: 0 };
  expect(record).toEqual({ ...none, transitions: 0, term: 0, ...expected });
});

test('a refusal is an error, not a lost race', async () => {
  await expect(openStore('no-such-namespace').create(RECORD, signal)).rejects.toMatchObject({
    name: 'KubeError',
    reason: 'NotFound',
  });
});

test('two elections over one Lease: a stop hands leadership over, in a higher term', async () => {
  const observer: ElectionObserver = {
    becameLeader() {},
    lost() {},
    released() {},
    following: vi.fn(),
    failed: vi.fn(),
  };
  const leading = new Map<string, Leadership>();
  const run = (identity: string) => {
    const stop = new AbortController();
    const ended = runElection({
      store: openStore(),
      identity,
      timing: { leaseDurationMs: 60_000, renewDeadlineMs: 30_000, retryPeriodMs: 20 },
      clock,
      random: () => 0,
      observer,
      signal: stop.signal,
      async lead(leadership) {
        leading.set(identity, leadership);
        await untilAborted(leadership.signal);
      },
    });
    return { ended, stop: () => stop.abort() };
  };
  const a = run('a');
  await vi.waitFor(() => expect(leading.has('a')).toBe(true));
  const b = run('b');
  await vi.waitFor(() => expect(observer.following).toHaveBeenCalledWith('a'));
  // Renewals go on meanwhile.
  await vi.waitFor(() => expect(sent.length).toBeGreaterThan(20), { timeout: 10_000 });
  expect(leading.has('b')).toBe(false);
  a.stop();
  await a.ended;
  await vi.waitFor(() => expect(leading.has('b')).toBe(true), { timeout: 10_000 });
  expect(() => leading.get('a')?.assertHeld()).toThrow();
  expect(leading.get('b')?.term).toBeGreaterThan(leading.get('a')?.term ?? 0);
  expect((await server.call(PATH)).json).toMatchObject({ spec: { holderIdentity: 'b' } });
  b.stop();
  await b.ended;
  expect((await server.call(PATH)).json).toMatchObject({ spec: { holderIdentity: '' } });
  expect(observer.failed).not.toHaveBeenCalled();
});
