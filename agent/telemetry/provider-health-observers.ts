/** What the provider health monitor tells, as log lines on changes and gauges in each round. */
import { Gauge, type Registry } from 'prom-client';
import type { ProviderHealthObserver } from '#agent/provider-health/observer.ts';
import type { Log } from './log.ts';
import { METRIC_PREFIX } from './metrics.ts';

const seconds = (ms: number) => ms / 1000;

export function providerHealthObserver(log: Log, registry: Registry): ProviderHealthObserver {
  const gauge = (name: string, help: string) =>
    new Gauge({
      name: METRIC_PREFIX + name,
      help,
      labelNames: ['provider', 'target'],
      registers: [registry],
    });
  const up = gauge('provider_target_up', '1 while the last check reached the target.');
  const duration = gauge('provider_check_duration_seconds', 'Time of the last check.');
  const timestamp = gauge(
    'provider_check_timestamp_seconds',
    'When the last check ended, in seconds since the epoch.',
  );
  return {
    checked(provider, target, { durationMs, checkedAtMs }) {
      const labels = { provider, target: target.name };
      up.set(labels, target.ready ? 1 : 0);
      duration.set(labels, seconds(durationMs));
      timestamp.set(labels, seconds(checkedAtMs));
    },
    targetDown: (provider, { name: target, reason, message }) =>
      log.warn({ provider, target, reason, detail: message }, 'provider target not ready'),
    targetUp: (provider, { name: target }) =>
      log.info({ provider, target }, 'provider target ready'),
    targetGone(provider, target) {
      for (const each of [up, duration, timestamp]) each.remove({ provider, target });
    },
    writeFailed(provider, error, failures) {
      const fields = { provider, err: error, failures };
      if (failures === 1) log.warn(fields, 'ProviderHealth cannot be written, trying on');
      else log.debug(fields, 'ProviderHealth cannot be written, trying on');
    },
    writeRecovered: (provider) => log.info({ provider }, 'ProviderHealth is written again'),
    pruned: (names) =>
      log.info({ providers: names }, 'ProviderHealth of unconfigured providers deleted'),
    pruneFailed(error, failures) {
      const fields = { err: error, failures };
      const message = 'ProviderHealth of unconfigured providers cannot be deleted, trying on';
      if (failures === 1) log.warn(fields, message);
      else log.debug(fields, message);
    },
  };
}
