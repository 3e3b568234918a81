/**
 * `maxLeases`: at every moment the leases of a proxy that certainly live are counted. The last one
 * of them was granted when the others lived already, so that at its grant the proxy had to allow
 * for all of them; what it allows for may have been lowered since.
 */

import type { Span } from '../history.ts';
import type { Life } from './life.ts';
import { type Digest, type Story, termsOf } from './story.ts';
import type { Finding, Violation } from './violation.ts';

interface Living extends Span {
  readonly story: Story;
}

export function checkCapacity(digest: Digest, lives: ReadonlyMap<Story, Life>): Finding {
  const violations: Violation[] = [];
  let full = 0;
  const byProxy = Map.groupBy(lives.keys(), ({ machine }) => machine.uid);
  for (const [uid, stories] of byProxy) {
    const spans = stories
      .flatMap((story) => (lives.get(story)?.certain ?? []).map((span) => ({ story, ...span })))
      .sort((a, b) => a.calledMs - b.calledMs);
    let living: Living[] = [];
    for (const begun of spans) {
      living = living.filter((one) => one.endMs > begun.calledMs);
      living.push(begun);
      const allowed = allowedAt(digest, uid, living);
      if (living.length === allowed) full++;
      if (living.length <= allowed) continue;
      violations.push(tooMany(digest, uid, living, allowed));
      // One excess shows in every later lease, too.
      break;
    }
  }
  return { violations, facts: { 'moments at which a proxy was certainly full': full } };
}

/**
 * The most that the proxy may have allowed when the last of these leases was granted. Every proxy
 * allows one; that it was not there at all is another rule's business.
 */
function allowedAt({ inventory }: Digest, uid: string, living: readonly Living[]): number {
  const versions = inventory.possible(uid, lastGrantOf(living));
  return Math.max(1, ...versions.map((version) => version?.entry.maxLeases ?? 0));
}

function lastGrantOf(living: readonly Living[]): Span {
  const grants = living.map(({ story }) => story.grant);
  return {
    calledMs: Math.max(...grants.map(({ calledMs }) => calledMs)),
    endMs: Math.max(...grants.map(({ endMs }) => endMs)),
  };
}

function tooMany(
  { inventory }: Digest,
  uid: string,
  living: readonly Living[],
  allowed: number,
): Violation {
  const atMs = Math.max(...living.map(({ calledMs }) => calledMs));
  const writes = inventory.possibleWrites(uid, lastGrantOf(living));
  const syncs = writes.flatMap((write) => write?.sync ?? []);
  return {
    rule: 'capacity',
    message: `${living.length} leases of ${uid} live at once, which allows ${allowed}`,
    evidence: [...living.flatMap(({ story }) => termsOf(story, atMs)), ...syncs],
    uids: [uid],
  };
}
