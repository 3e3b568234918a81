/** The leader election as log lines and the gauge `proxy_operator_leader`. */
import { Gauge, type Registry } from 'prom-client';
import type { ElectionObserver } from '#agent/runtime/leader-election.ts';
import type { Log } from './log.ts';
import { METRIC_PREFIX } from './metrics.ts';

export function electionObserver(log: Log, registry: Registry): ElectionObserver {
  const leader = new Gauge({
    name: `${METRIC_PREFIX}leader`,
    help: '1 while this replica leads.',
    registers: [registry],
  });
  return {
    becameLeader(term) {
      leader.set(1);
      log.info({ term }, 'this replica leads');
    },
    lost(reason) {
      leader.set(0);
      log.error({ reason }, 'leadership lost, acting no more');
    },
    released() {
      leader.set(0);
      log.info({}, 'leadership released');
    },
    following: (holder) => log.info({ holder }, 'another replica leads, standing by'),
    failed(error, failures) {
      const fields = { err: error, failures };
      if (failures === 1) log.warn(fields, 'cannot reach the Lease of the leader, trying on');
      else log.debug(fields, 'cannot reach the Lease of the leader, trying on');
    },
  };
}
