import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { providerHealthObserver } from '#agent/telemetry/provider-health-observers.ts';
import { recordingLog, samplesOf } from './recording.ts';

const target = { name: 'apiserver', ready: true, reason: 'Reachable', message: 'ok' };

function setUp() {
  const registry = new Registry();
  const { log, lines } = recordingLog();
  const observer = providerHealthObserver(log, registry);
  return { observer, lines, samples: () => samplesOf(registry) };
}

test('each check sets the gauges of its targets, which go when the target goes', async () => {
  const { observer, lines, samples } = setUp();
  const times = { durationMs: 250, checkedAtMs: 1_767_225_600_500 };
  observer.checked('local', target, times);
  observer.checked('local', { ...target, name: 'b', ready: false }, times);
  observer.targetGone('local', 'b');
  const labels = '{provider="local",target="apiserver"}';
  expect(await samples()).toEqual([
    `proxy_operator_provider_target_up${labels} 1`,
    `proxy_operator_provider_check_duration_seconds${labels} 0.25`,
    `proxy_operator_provider_check_timestamp_seconds${labels} 1767225600.5`,
  ]);
  observer.checked('local', { ...target, ready: false }, times);
  expect((await samples())[0]).toBe(`proxy_operator_provider_target_up${labels} 0`);
  expect(lines).toEqual([]);
});

test('down is a warning with the reason, up is news', () => {
  const { observer, lines } = setUp();
  observer.targetDown('local', { ...target, ready: false, reason: 'Forbidden', message: 'no' });
  observer.targetUp('local', target);
  const where = { provider: 'local', target: 'apiserver' };
  expect(lines).toEqual([
    {
      level: 'warn',
      fields: { ...where, reason: 'Forbidden', detail: 'no' },
      message: 'provider target not ready',
    },
    { level: 'info', fields: where, message: 'provider target ready' },
  ]);
});

test('a failure that lasts is a warning once', () => {
  const { observer, lines } = setUp();
  for (const failures of [1, 2, 3]) {
    observer.writeFailed('local', new Error('403'), failures);
    observer.pruneFailed(new Error('403'), failures);
  }
  expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(2);
  observer.writeRecovered('local');
  observer.pruned(['old']);
  expect(lines.slice(-2).map(({ level }) => level)).toEqual(['info', 'info']);
});
