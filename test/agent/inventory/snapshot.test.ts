import { describe, expect, test } from 'vitest';
import type { Verdict } from '#agent/health/verdict-reader.ts';
import { createInventoryBuilder, inventoryEntry } from '#agent/inventory/snapshot.ts';
import type { Condition } from '#shared/crd/condition.ts';
import type { ProxyStatus } from '#shared/crd/proxy.ts';
import { inventoryEntrySchema } from '#shared/wire/sync.ts';
import { proxyWith } from '#test/agent/controller/harness.ts';

interface Parts {
  readonly metadata?: object;
  readonly spec?: object;
  readonly status?: ProxyStatus;
}

function proxy(spec: object, { metadata, status }: Omit<Parts, 'spec'> = {}) {
  return proxyWith(spec, { name: 'p1', uid: 'u1', ...metadata }, status);
}

const external = (parts: Parts = {}) =>
  proxy(
    { mode: 'External', endpoint: { host: 'proxy.example', port: 8080 }, ...parts.spec },
    parts,
  );
const managed = (parts: Parts = {}) => proxy({ provider: 'local', ...parts.spec }, parts);

const condition = (type: string, status: Condition['status'], reason: string): Condition => ({
  type,
  status,
  reason,
  message: '',
  lastTransitionTime: '2026-01-02T03:04:05Z',
});

const verdict = (healthy: boolean | null, more: Partial<Verdict> = {}): Verdict => ({
  healthy,
  reason: 'ProbeSucceeded',
  message: '',
  probedAtMs: 0,
  ...more,
});

const sources = (found?: Verdict) => ({ verdict: found, credentials: undefined });

describe('inventory entry', () => {
  test('tells all of an external proxy and of its last probe', () => {
    const entry = inventoryEntry(
      external({ spec: { attributes: { region: 'eu' }, maxLeases: 3, leasable: false } }),
      sources(verdict(true, { latencyMillis: 12, egressIP: '192.0.2.1' })),
    );
    expect(entry).toEqual({
      uid: 'u1',
      namespace: 'crawl',
      name: 'p1',
      instance: 'proxy.example:8080',
      host: 'proxy.example',
      port: 8080,
      protocol: 'http',
      attributes: { region: 'eu' },
      maxLeases: 3,
      healthy: true,
      latencyMillis: 12,
      egressIP: '192.0.2.1',
      leasable: false,
      draining: false,
    });
    expect(inventoryEntrySchema.safeParse(entry).success).toBe(true);
  });

  test('is none for a managed proxy without an address', () => {
    expect(inventoryEntry(managed(), sources())).toBeUndefined();
  });

  test('a managed proxy is another instance when the machine was made again under its id', () => {
    const status: ProxyStatus = {
      ip: '127.42.0.2',
      port: 3128,
      providerID: 'crawl/proxy-abc',
      conditions: [condition('Provisioned', 'True', 'Created')],
    };
    const entry = inventoryEntry(managed({ status }), sources());
    expect(entry).toMatchObject({
      instance: 'crawl/proxy-abc@2026-01-02T03:04:05Z',
      host: '127.42.0.2',
      port: 3128,
      protocol: 'http',
    });
    const again = { ...condition('Provisioned', 'True', 'Created') };
    again.lastTransitionTime = '2026-01-02T04:00:00Z';
    const replaced = inventoryEntry(
      managed({ status: { ...status, conditions: [again] } }),
      sources(),
    );
    expect(replaced?.instance).not.toBe(entry?.instance);
  });

  test.each<[string, Verdict | undefined, Condition[], boolean | null]>([
    ['nobody probed it', undefined, [], null],
    ['a first verdict is missing', verdict(null), [], null],
    ['it is healthy', verdict(true), [], true],
    ['it is not', verdict(false), [], false],
    [
      'the provider says that it stopped, which probes have not seen yet',
      verdict(true),
      [condition('Healthy', 'False', 'InstanceStopped')],
      false,
    ],
    [
      'the provider says that it ended',
      undefined,
      [condition('Healthy', 'False', 'InstanceTerminated')],
      false,
    ],
    [
      'the status is older than the verdict',
      verdict(true),
      [condition('Healthy', 'False', 'Timeout')],
      true,
    ],
  ])('healthy when %s', (_when, found, conditions, healthy) => {
    const status = { ip: '10.0.0.1', conditions };
    expect(inventoryEntry(managed({ status }), sources(found))?.healthy).toBe(healthy);
  });

  test.each([
    [{}, {}, false],
    [{}, { phase: 'Ready' }, false],
    [{}, { phase: 'Draining' }, true],
    [{}, { phase: 'Replacing' }, true],
    [{}, { phase: 'Deleting' }, true],
    [{ deletionTimestamp: '2026-01-01T00:00:00Z' }, { phase: 'Ready' }, true],
  ] as const)('with %o in phase %o draining is %s', (metadata, status, draining) => {
    const full = { ip: '10.0.0.1', ...status };
    expect(inventoryEntry(managed({ metadata, status: full }), sources())?.draining).toBe(draining);
  });

  test('what the status says fills in until the first probe of this process', () => {
    const status = { ip: '10.0.0.1', latencyMillis: 40, egressIP: '192.0.2.7' };
    expect(inventoryEntry(managed({ status }), sources())).toMatchObject({
      latencyMillis: 40,
      egressIP: '192.0.2.7',
    });
  });

  test('credentials go with the entry; while they are unknown nobody is offered it', () => {
    const endpoint = { host: 'h', port: 1, protocol: 'socks5', authSecretRef: { name: 's' } };
    const withSecret = external({ spec: { endpoint } });
    const known = inventoryEntry(withSecret, {
      verdict: verdict(true),
      credentials: { username: 'crawl', password: 's' },
    });
    expect(known).toMatchObject({
      protocol: 'socks5',
      healthy: true,
      credentials: { username: 'crawl', password: 's' },
    });
    const unknown = inventoryEntry(withSecret, sources(verdict(true)));
    expect(unknown?.healthy).toBeNull();
    expect(unknown).not.toHaveProperty('credentials');
  });
});

describe('inventory', () => {
  const unknown = { verdict: () => undefined, credentials: () => undefined };

  test('is by uid, without those that have no entry', () => {
    const proxies = [
      external(),
      managed({ metadata: { uid: 'u2', name: 'p2' } }),
      external({ metadata: { uid: 'u3', name: 'p3' } }),
    ];
    const inventory = createInventoryBuilder()({ ...unknown, proxies });
    expect([...inventory.keys()]).toEqual(['u1', 'u3']);
  });

  test('keeps the entries whose sources are the same, and makes the others anew', () => {
    const endpoint = { host: 'h', port: 1, protocol: 'http', authSecretRef: { name: 's' } };
    const plain = external();
    const secret = external({ metadata: { uid: 'u2', name: 'p2' }, spec: { endpoint } });
    const build = createInventoryBuilder();
    const password = { current: 'one' };
    const found = { current: verdict(true) };
    const read = (...proxies: (typeof plain)[]) =>
      build({
        proxies,
        verdict: (key) => (key === 'crawl/p1' ? found.current : verdict(true)),
        credentials: (_namespace, name) => ({ username: name, password: password.current }),
      });
    const first = read(plain, secret);
    expect(read(plain, secret).get('u1')).toBe(first.get('u1'));
    password.current = 'two';
    expect(read(plain, secret).get('u2')?.credentials?.password).toBe('two');
    expect(read(plain, secret).get('u1')).toBe(first.get('u1'));
    found.current = verdict(false);
    expect(read(plain, secret).get('u1')?.healthy).toBe(false);
    const edited = external({ spec: { maxLeases: 2 } });
    expect(read(edited, secret).get('u1')?.maxLeases).toBe(2);
  });
});
