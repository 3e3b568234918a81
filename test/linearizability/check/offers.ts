/**
 * What is granted may be granted: at some moment of the request the proxy was one that the agents
 * declare healthy, leasable, not draining and matching. And every answer shows a proxy as it is.
 */
import {
  type AcquireOperation,
  answerOf,
  type Operation,
  type SeenLease,
  type Span,
  type Version,
} from '../history.ts';
import { type Digest, leaseOf, type Story } from './story.ts';
import type { Finding, Violation } from './violation.ts';

export function checkOffers(digest: Digest): Finding {
  const violations: Violation[] = digest.unplaced.map((acquire) => ({
    rule: 'offer',
    message: `granted ${leaseOf(acquire)?.proxy.host}, which no agent ever declared`,
    evidence: [acquire],
  }));
  let certain = 0;
  for (const story of digest.stories.values()) {
    const possible = digest.inventory.possible(story.machine.uid, story.grant);
    if (possible.length === 1) certain++;
    if (possible.some((version) => version !== null && mayBeGranted(version, story))) continue;
    violations.push({
      rule: 'offer',
      message: `granted ${story.machine.uid}, which could not be had: ${whyNot(possible, story)}`,
      evidence: [...story.answered, ...story.lost, ...syncsOf(digest, story, story.grant)],
      uids: [story.machine.uid],
    });
  }
  return { violations, facts: { 'grants of a proxy whose state is certain': certain } };
}

/** Every lease in an answer shows its proxy as it may have been at that time. */
export function checkViews(digest: Digest): Finding {
  const violations: Violation[] = [];
  let shown = 0;
  for (const story of digest.stories.values()) {
    for (const operation of [...story.answered, ...story.operations]) {
      const lease = answerOf(operation)?.lease;
      if (lease === undefined) continue;
      shown++;
      const fault = viewFault(digest, story, operation, lease);
      if (fault === undefined) continue;
      violations.push({
        rule: 'view',
        message: `lease ${story.leaseID} ${fault}`,
        evidence: [operation, ...syncsOf(digest, story, operation)],
        uids: [story.machine.uid],
      });
    }
  }
  return { violations, facts: { 'leases shown': shown } };
}

/**
 * Whether the story can begin with this version. With one request alone, the answer shows the very
 * version that was granted.
 */
function mayBeGranted(version: Version, { answered, lost, lease, machine }: Story): boolean {
  const [first, ...others] = answered;
  const { entry } = version;
  if (entry.instance !== machine.instance) return false;
  if (others.length + lost.length === 0 && !shows(lease, version)) return false;
  return isOffered(version) && matches(version, first);
}

function isOffered({ entry }: Version): boolean {
  return entry.healthy === true && entry.leasable && !entry.draining;
}

function matches({ entry }: Version, { request }: AcquireOperation): boolean {
  const wished = Object.entries(request.selector ?? {});
  return wished.every(([name, value]) => entry.attributes[name] === value);
}

function whyNot(possible: readonly (Version | null)[], story: Story): string {
  const reasons = possible.map((version) => {
    if (version === null) return 'not there';
    const { entry } = version;
    if (entry.instance !== story.machine.instance) return 'another machine';
    if (!entry.leasable) return 'cordoned';
    if (entry.draining) return 'draining';
    if (entry.healthy !== true) return 'not healthy';
    return matches(version, story.answered[0]) ? 'other than it is shown' : 'not matching';
  });
  return [...new Set(reasons)].join(', or ');
}

function viewFault(
  { inventory }: Digest,
  { machine, lease }: Story,
  span: Span,
  seen: SeenLease,
): string | undefined {
  const shown = inventory.machineAt(seen.proxy.host);
  if (shown?.instance !== machine.instance) return `moved to ${seen.proxy.host}`;
  if (seen.target !== lease.target) return `changed its target to ${seen.target}`;
  const possible = inventory.possible(machine.uid, span);
  const isTrue = possible.some((version) => version !== null && shows(seen, version));
  return isTrue ? undefined : 'shows its proxy as it was at no moment of the request';
}

/** Whether the lease shows this version; an address that is not declared may be an earlier one. */
function shows({ proxy }: SeenLease, { entry }: Version): boolean {
  return (
    proxy.host === entry.host &&
    proxy.port === entry.port &&
    proxy.namespace === entry.namespace &&
    proxy.name === entry.name &&
    proxy.latencyMillis === entry.latencyMillis &&
    (entry.egressIP === undefined || entry.egressIP === proxy.egressIP) &&
    isSameMap(proxy.attributes, entry.attributes)
  );
}

function isSameMap(
  some: Readonly<Record<string, string>>,
  others: Readonly<Record<string, string>>,
): boolean {
  const names = Object.keys(some);
  return (
    names.length === Object.keys(others).length &&
    names.every((name) => some[name] === others[name])
  );
}

function syncsOf({ inventory }: Digest, { machine }: Story, span: Span): Operation[] {
  return inventory.possibleWrites(machine.uid, span).flatMap((write) => write?.sync ?? []);
}
