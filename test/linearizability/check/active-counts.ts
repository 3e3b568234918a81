/**
 * An agent drains by what its syncs are answered: a proxy of which the edge says that it has no
 * lease may be destroyed. So the count of a proxy is never below the leases that certainly live.
 */

import { succeeded } from '../history.ts';
import { type Life, livesThrough } from './life.ts';
import { type Digest, type Story, termsOf } from './story.ts';
import type { Finding, Violation } from './violation.ts';

export function checkActiveCounts(digest: Digest, lives: ReadonlyMap<Story, Life>): Finding {
  const violations: Violation[] = [];
  let compared = 0;
  const byCluster = Map.groupBy(lives.keys(), ({ lease }) => lease.proxy.cluster);
  for (const [cluster, stories] of byCluster) {
    const waiting = stories.toSorted((a, b) => a.grant.endMs - b.grant.endMs);
    let next = 0;
    let current: Story[] = [];
    for (const sync of digest.syncs) {
      if (sync.cluster !== cluster || !succeeded(sync) || sync.active === undefined) continue;
      for (;;) {
        const story = waiting[next];
        if (story === undefined || story.grant.endMs > sync.calledMs) break;
        current.push(story);
        next++;
      }
      current = current.filter((story) => lastMs(lives.get(story)) >= sync.calledMs);
      const living = current.filter((story) => {
        const life = lives.get(story);
        return life !== undefined && livesThrough(life, sync);
      });
      for (const [uid, held] of Map.groupBy(living, ({ machine }) => machine.uid)) {
        const told = sync.active[uid];
        if (told === undefined && sync.partial === true) continue;
        compared++;
        if ((told ?? 0) >= held.length) continue;
        violations.push({
          rule: 'active-count',
          message: `the agent was told of ${told ?? 0} leases of ${uid}, and ${held.length} live`,
          evidence: [...held.flatMap((story) => termsOf(story, sync.endMs)), sync],
          uids: [uid],
        });
      }
    }
  }
  return { violations, facts: { 'counts told to agents': compared } };
}

function lastMs(life: Life | undefined): number {
  return life?.certain.at(-1)?.endMs ?? Number.NEGATIVE_INFINITY;
}
