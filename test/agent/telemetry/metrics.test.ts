import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createFeedback } from '#agent/inventory/feedback.ts';
import { parseProxy } from '#agent/kube/proxies.ts';
import { registerCollectors } from '#agent/telemetry/collectors.ts';
import type { Log } from '#agent/telemetry/log.ts';
import { createMetrics } from '#agent/telemetry/metrics.ts';
import * as observers from '#agent/telemetry/observers.ts';
import { startTelemetryServer, type TelemetryServer } from '#agent/telemetry/server.ts';
import { FakeClock } from '#test/fakes/clock.ts';

function recordingLog() {
  const lines: string[] = [];
  const write = (level: string) => (_fields: object, message: string) =>
    void lines.push(`${level}: ${message}`);
  const log: Log = {
    trace: () => {},
    debug: () => {},
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };
  return { log, lines };
}

function setUp() {
  const registry = new Registry();
  const metrics = createMetrics(registry);
  const { log, lines } = recordingLog();
  /** Samples of the exposition, as text. */
  const samples = async () =>
    (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return { registry, metrics, log, lines, samples };
}

describe('metrics', () => {
  test('every name has the prefix, also of what has no sample yet', () => {
    const names = setUp()
      .registry.getMetricsAsArray()
      .map(({ name }) => name);
    expect(names).toContain('proxy_operator_provider_requests_total');
    expect(names.filter((name) => !name.startsWith('proxy_operator_'))).toEqual([]);
  });

  test('probes feed a histogram and a failure counter per proxy, which go with the proxy', async () => {
    const { metrics, log, samples } = setUp();
    const probes = observers.probeObserver(log, metrics);
    probes.probed('crawl/a', { ok: true, latencyMillis: 20 }, 20);
    expect(await samples()).toContain(
      'proxy_operator_healthcheck_failures_total{proxy="crawl/a"} 0',
    );
    const failure = { ok: false, reason: 'Timeout', message: '', latencyMillis: 5_000 } as const;
    probes.probed('crawl/a', failure, 5_000);
    const seen = await samples();
    expect(seen).toContain('proxy_operator_healthcheck_failures_total{proxy="crawl/a"} 1');
    expect(seen).toContain('proxy_operator_healthcheck_duration_seconds_count{proxy="crawl/a"} 2');
    expect(seen).toContain('proxy_operator_healthcheck_duration_seconds_sum{proxy="crawl/a"} 5.02');
    probes.forgotten('crawl/a');
    expect((await samples()).join()).not.toContain('crawl/a');
  });

  test('requests to providers are counted by result', async () => {
    const { metrics, log, samples } = setUp();
    const requests = observers.providerObserver(log, metrics);
    const request = { provider: 'local', op: 'create', durationMs: 100 } as const;
    requests.providerRequest({ ...request, result: 'ok' });
    requests.providerRequest({ ...request, result: 'QuotaExceeded' });
    expect(await samples()).toContain(
      'proxy_operator_provider_requests_total{provider="local",op="create",result="QuotaExceeded"} 1',
    );
  });

  test('proxies are counted by phase at the scrape, empty phases included', async () => {
    const { registry, samples } = setUp();
    const phases = ['Ready', 'Ready', 'Failed', undefined];
    const proxies = phases.map((phase, nth) =>
      parseProxy({
        metadata: { name: `p${nth}`, uid: `u${nth}`, resourceVersion: '1', creationTimestamp: '' },
        spec: {},
        status: phase === undefined ? {} : { phase },
      }),
    );
    const feedback = createFeedback();
    const clock = new FakeClock();
    registerCollectors(registry, { proxies: { list: () => proxies }, feedback, clock });
    expect((await samples()).filter((line) => line.startsWith('proxy_operator_proxies'))).toEqual([
      'proxy_operator_proxies{phase="Pending"} 1',
      'proxy_operator_proxies{phase="Provisioning"} 0',
      'proxy_operator_proxies{phase="Ready"} 2',
      'proxy_operator_proxies{phase="Unhealthy"} 0',
      'proxy_operator_proxies{phase="Replacing"} 0',
      'proxy_operator_proxies{phase="Draining"} 0',
      'proxy_operator_proxies{phase="Deleting"} 0',
      'proxy_operator_proxies{phase="Failed"} 1',
    ]);
    proxies.length = 0;
    expect(await samples()).toContain('proxy_operator_proxies{phase="Ready"} 0');
  });

  test('what the edge answers is exported as it is', async () => {
    const { registry, samples } = setUp();
    const feedback = createFeedback();
    const clock = new FakeClock();
    registerCollectors(registry, { proxies: { list: () => [] }, feedback, clock });
    expect((await samples()).join()).not.toContain('edge_last_answer_age_seconds');
    feedback.apply(
      {
        acceptedSeq: 1,
        serverTime: 0,
        leases: { u1: 2, u2: 1 },
        reports: { u1: { rate_limited: 0, banned: 3, targets: [] } },
        counters: { granted: 41, no_match: 2 },
      },
      clock.monotonicMs(),
    );
    await clock.advance(5_000);
    const seen = await samples();
    expect(seen).toContain('proxy_operator_leases_active 3');
    expect(seen).toContain('proxy_operator_lease_requests_total{outcome="granted"} 41');
    expect(seen).toContain('proxy_operator_lease_reports_total{result="banned"} 3');
    expect(seen).toContain('proxy_operator_edge_last_answer_age_seconds 5');
    expect(await samples()).toContain('proxy_operator_lease_requests_total{outcome="granted"} 41');
  });

  test('a lasting failure of the API server is said once, and that it is over', () => {
    const { metrics, log, lines } = setUp();
    const informer = observers.informerObserver(log, metrics);
    for (let failures = 1; failures <= 9; failures++) {
      informer.failed('proxies', new Error('no'), failures);
    }
    informer.recovered('proxies', 9);
    informer.failed('proxies', new Error('a single reset'), 1);
    informer.recovered('proxies', 1);
    expect(lines).toEqual(['warn: cannot list or watch, trying on', 'info: following again']);
  });
});

describe('telemetry server', () => {
  let server: TelemetryServer;
  let reasons: string[] = [];
  beforeEach(async () => {
    const registry = new Registry();
    createMetrics(registry);
    const deps = { metrics: registry, notReady: () => reasons };
    server = await startTelemetryServer({ host: '127.0.0.1', port: 0 }, deps);
  });
  afterEach(() => server.close());

  test('healthz is always well, readyz tells what is missing', async () => {
    reasons = ['proxies: the first list is not complete'];
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    const unready = await fetch(`${server.url}/readyz`);
    expect([unready.status, await unready.text()]).toEqual([
      503,
      'proxies: the first list is not complete\n',
    ]);
    reasons = [];
    expect((await fetch(`${server.url}/readyz?verbose`)).status).toBe(200);
  });

  test('metrics come as Prometheus reads them, and nothing else is there', async () => {
    const metrics = await fetch(`${server.url}/metrics`);
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(await metrics.text()).toContain('proxy_operator_process_resident_memory_bytes');
    expect((await fetch(`${server.url}/debug`)).status).toBe(404);
    const post = await fetch(`${server.url}/metrics`, { method: 'POST' });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  });

  test('an address in use is an error that names it', async () => {
    const port = Number(new URL(server.url).port);
    const second = startTelemetryServer(
      { host: '127.0.0.1', port },
      { metrics: new Registry(), notReady: () => [] },
    );
    await expect(second).rejects.toThrow(`cannot listen on 127.0.0.1:${port}: listen EADDRINUSE`);
  });
});
