/** What the controller tells of itself, as log lines and metrics. */
import { Gauge, type Registry } from 'prom-client';
import type { ControllerObserver } from '#agent/controller/deps.ts';
import type { Log } from './log.ts';
import { METRIC_PREFIX } from './metrics.ts';

export function controllerObserver(log: Log, registry: Registry): ControllerObserver {
  const replacementsHeld = new Gauge({
    name: `${METRIC_PREFIX}replacements_held`,
    help: 'Replacements that wait, since most instances of the provider failed at once.',
    labelNames: ['provider'],
    registers: [registry],
  });
  return {
    braked: (provider, unhealthy, machines) =>
      log.error(
        { provider, unhealthy, machines },
        'most instances of a provider failed within a minute; replacements are held',
      ),
    released: (provider, why, heldMs) =>
      log.warn({ provider, why, heldSeconds: Math.round(heldMs / 1000) }, 'replacements go on'),
    held: (provider, replacements) => replacementsHeld.set({ provider }, replacements),
  };
}
