/** What the orphan sweeper tells, as log lines and metrics. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { GcObserver } from '#agent/gc/observer.ts';
import { errorClass } from '#agent/providers/errors.ts';
import type { Log } from './log.ts';
import { METRIC_PREFIX } from './metrics.ts';

export function gcObserver(log: Log, registry: Registry): GcObserver {
  const registers = [registry];
  const sweeps = new Counter({
    name: `${METRIC_PREFIX}gc_sweeps_total`,
    help: 'Sweeps for orphaned machines by result.',
    labelNames: ['result'],
    registers,
  });
  const orphanCount = new Gauge({
    name: `${METRIC_PREFIX}gc_orphans`,
    help: 'Machines whose Proxy is gone, as of the last sweep of the provider.',
    labelNames: ['provider'],
    registers,
  });
  const deletions = new Counter({
    name: `${METRIC_PREFIX}gc_deletions_total`,
    help: 'Deletions of orphaned machines by result.',
    labelNames: ['provider', 'result'],
    registers,
  });
  /** A refusal is told when it begins or changes, not at every interval. */
  let refusal: string | undefined;
  return {
    swept(result) {
      sweeps.inc({ result });
      if (result !== 'refused') refusal = undefined;
      log.debug({ result }, 'swept for orphaned machines');
    },
    refused(reason) {
      if (reason !== refusal) log.warn({ reason }, 'not sweeping for orphaned machines');
      refusal = reason;
    },
    failed: (error) => log.warn({ err: error }, 'sweep for orphaned machines failed'),
    heldBack: (provider, machines) =>
      log.warn(
        { provider, machines },
        'there are machines but no Proxy at all; not deleting any: were the objects lost?',
      ),
    providerSkipped: (provider, error) =>
      log.warn({ provider, err: error }, 'machines cannot be listed; not swept this time'),
    providerPartial: (provider, unread) =>
      log.warn({ provider, unread }, 'not all machines can be listed; sweeping the others'),
    orphans(provider, count, due) {
      orphanCount.set({ provider }, count);
      if (count > 0) log.info({ provider, orphans: count, due }, 'orphaned machines found');
    },
    providerForgotten: (provider) => orphanCount.remove({ provider }),
    deleted(provider, { id, uid, proxy }) {
      deletions.inc({ provider, result: 'ok' });
      log.warn({ provider, id, uid, proxy }, 'orphaned machine deleted');
    },
    deleteFailed(provider, { id, uid, proxy }, error) {
      deletions.inc({ provider, result: errorClass(error) });
      log.warn(
        { provider, id, uid, proxy, err: error },
        'orphaned machine cannot be deleted, trying again at the next sweep',
      );
    },
  };
}
