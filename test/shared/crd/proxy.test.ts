import { describe, expect, it } from 'vitest';
import { labelKeySchema, labelValueSchema, selectorSchema } from '#shared/crd/attributes.ts';
import { proxySchema, proxySpecSchema } from '#shared/crd/proxy.ts';

describe('the Proxy schema', () => {
  it('fills in every default of the contract', () => {
    expect(proxySpecSchema.parse({ provider: 'local' })).toEqual({
      mode: 'Managed',
      provider: 'local',
      port: 3128,
      maxLeases: 10,
      healthCheck: {
        expectedStatus: 200,
        intervalSeconds: 10,
        timeoutSeconds: 5,
        successThreshold: 1,
        failureThreshold: 3,
      },
      paused: false,
      leasable: true,
      deletionPolicy: 'Delete',
      drainSeconds: 0,
    });
  });

  it('reads an object as the API server returns it and drops what it does not know', () => {
    const proxy = proxySchema.parse({
      apiVersion: 'crawl.example.com/v1alpha1',
      kind: 'Proxy',
      metadata: {
        name: 'a',
        namespace: 'crawl',
        uid: 'u-1',
        resourceVersion: '7',
        generation: 2,
        creationTimestamp: '2026-01-01T00:00:00Z',
        managedFields: [{ manager: 'kubectl' }],
      },
      spec: { mode: 'External', endpoint: { host: '127.0.0.1', port: 3128 } },
    });
    expect(proxy.metadata).toEqual({
      name: 'a',
      namespace: 'crawl',
      uid: 'u-1',
      resourceVersion: '7',
      generation: 2,
      creationTimestamp: '2026-01-01T00:00:00Z',
      finalizers: [],
      labels: {},
      annotations: {},
    });
    expect(proxy.spec.endpoint).toEqual({ host: '127.0.0.1', port: 3128, protocol: 'http' });
    expect(proxy.status).toEqual({});
  });

  it.each([
    ['a port of 0', { provider: 'p', port: 0 }],
    ['a port above 65535', { provider: 'p', port: 65_536 }],
    ['no lease at all', { provider: 'p', maxLeases: 0 }],
    ['an unknown mode', { mode: 'Automatic' }],
    ['an unknown protocol', { endpoint: { host: 'h', port: 1, protocol: 'ftp' } }],
    ['a health check that is no URL', { provider: 'p', healthCheck: { url: 'file:///etc' } }],
  ])('refuses %s', (_, spec) => {
    expect(proxySpecSchema.safeParse(spec).success).toBe(false);
  });
});

describe('attributes', () => {
  it.each([
    ['region', true],
    ['example.com/region', true],
    ['a.b-c_d', true],
    ['', false],
    ['/region', false],
    ['-region', false],
    ['Example.com/region', false],
    ['a/b/c', false],
    ['x'.repeat(63), true],
    ['x'.repeat(64), false],
  ])('takes the key %j: %s', (key, taken) => {
    expect(labelKeySchema.safeParse(key).success).toBe(taken);
  });

  it.each([
    ['', true],
    ['eu-west', true],
    ['eu west', false],
    ['.eu', false],
    ['x'.repeat(64), false],
  ])('takes the value %j: %s', (value, taken) => {
    expect(labelValueSchema.safeParse(value).success).toBe(taken);
  });

  it('takes 32 entries of a selector and refuses 33', () => {
    const entries = (n: number) =>
      Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, 'v']));
    expect(selectorSchema.safeParse(entries(32)).success).toBe(true);
    expect(selectorSchema.safeParse(entries(33)).success).toBe(false);
  });
});
