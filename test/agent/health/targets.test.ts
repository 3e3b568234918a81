import { describe, expect, test } from 'vitest';
import { probeTarget } from '#agent/health/targets.ts';
import { managed, proxyWith } from '#test/agent/controller/harness.ts';

const options = { echoUrl: 'https://edge/v1/echo', credentials: () => undefined };
const endpoint = { host: 'p.example', port: 8080, protocol: 'https' };
const external = (more: object = {}, spec: object = {}) =>
  proxyWith({ mode: 'External', endpoint: { ...endpoint, ...more }, ...spec });
const condition = (type: string, status: string, reason: string) => ({
  type,
  status,
  reason,
  message: 'm',
  lastTransitionTime: '2026-01-01T00:00:00.000Z',
});
const reached = { providerID: 'crawl/a', ip: '10.0.0.1', port: 4000 };

describe('a target', () => {
  test('is the endpoint of an external proxy, with the defaults of its check', () => {
    expect(probeTarget(external(), options)).toEqual({
      key: 'crawl/one',
      identity: 'uid-1 https://p.example:8080',
      protocol: 'https',
      host: 'p.example',
      port: 8080,
      url: 'https://edge/v1/echo',
      echo: true,
      expectedStatus: 200,
      intervalMs: 10_000,
      timeoutMs: 5000,
      successThreshold: 1,
      failureThreshold: 3,
    });
  });

  test('is the address of a managed machine, and another one when the machine is', () => {
    const since = (lastTransitionTime: string) =>
      managed(
        {},
        {},
        {
          ...reached,
          conditions: [{ ...condition('Provisioned', 'True', 'Created'), lastTransitionTime }],
        },
      );
    const first = probeTarget(since('2026-01-01T00:00:00.000Z'), options);
    expect(first).toMatchObject({ protocol: 'http', host: '10.0.0.1', port: 4000 });
    const next = probeTarget(since('2026-01-01T00:05:00.000Z'), options);
    expect(next?.identity).not.toBe(first?.identity);
  });

  test('takes URL, status, times and thresholds from the spec', () => {
    const healthCheck = {
      url: 'http://example.net/',
      expectedStatus: 204,
      intervalSeconds: 30,
      timeoutSeconds: 2,
      successThreshold: 4,
      failureThreshold: 5,
    };
    expect(probeTarget(external({}, { healthCheck }), options)).toMatchObject({
      url: 'http://example.net/',
      echo: false,
      expectedStatus: 204,
      intervalMs: 30_000,
      timeoutMs: 2000,
      successThreshold: 4,
      failureThreshold: 5,
    });
    const same = { healthCheck: { url: options.echoUrl } };
    expect(probeTarget(external({}, same), options)?.echo).toBe(true);
  });

  test.each([
    ['has no machine', managed()],
    ['has a machine without an address', managed({}, {}, { providerID: 'crawl/a' })],
    ['is being deleted', managed({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }, reached)],
    ['has credentials that are not read yet', external({ authSecretRef: { name: 's' } })],
  ])('is none for a proxy that %s', (_what, proxy) => {
    expect(probeTarget(proxy, options)).toBeUndefined();
  });

  test('of a paused proxy is probed like any other', () => {
    expect(probeTarget(managed({ paused: true }, {}, reached), options)).toBeDefined();
  });

  test('carries the credentials of its own namespace', () => {
    const credentials = (namespace: string, name: string) =>
      namespace === 'crawl' && name === 's' ? { username: 'u', password: 'p' } : undefined;
    const target = probeTarget(external({ authSecretRef: { name: 's' } }), {
      ...options,
      credentials,
    });
    expect(target?.credentials).toEqual({ username: 'u', password: 'p' });
  });
});

describe('the verdict to start from', () => {
  const withHealthy = (status: string, reason: string, more: object = {}) =>
    probeTarget(
      managed({}, {}, { ...reached, conditions: [condition('Healthy', status, reason)], ...more }),
      options,
    )?.seed;

  test('is what the status says of an earlier probe', () => {
    const found = { latencyMillis: 7, egressIP: '198.51.100.1' };
    const lastHealthCheckTime = '2026-01-01T00:00:30.000Z';
    expect(withHealthy('True', 'Healthy', { ...found, lastHealthCheckTime })).toEqual({
      healthy: true,
      reason: 'Healthy',
      message: 'm',
      probedAtMs: Date.UTC(2026, 0, 1, 0, 0, 30),
      ...found,
    });
    expect(withHealthy('False', 'Timeout')?.healthy).toBe(false);
  });

  test.each([
    ['Unknown', 'NotProbed'],
    ['False', 'InstanceStopped'],
    ['False', 'InstanceTerminated'],
  ])('is none when Healthy is %s by %s: no probe found that', (status, reason) => {
    expect(withHealthy(status, reason)).toBeUndefined();
  });
});
