/**
 * Which machines nobody owns any more, and which of them may go now. Pure. All that cannot be
 * proven counts as owned: the cost of a wrong "orphan" is somebody's running machine, the cost of
 * a wrong "owned" is one more interval of its bill.
 */
import type { Instance } from '#agent/providers/provider.ts';

export interface Ownership {
  /** Id of our installation; never empty. */
  readonly installation: string;
  /** The one namespace whose Proxies are known; absent: those of every one. */
  readonly namespace?: string;
}

/** How often the deletion of each orphan has been tried, by `orphanKey`. */
export type Sightings = ReadonlyMap<string, number>;

/** Of a provider's own machines, the share that one sweep may delete; always at least one. */
export const SHARE_MAX = 0.1;
/** Orphans of one provider that are remembered from sweep to sweep; the others wait. */
export const SIGHTINGS_MAX = 10_000;

/**
 * The machines that a sweep may judge: with our whole mark, and, when the Proxies of a single
 * namespace are known, not made for a Proxy of another one.
 */
export function ownMachines(
  machines: readonly Instance[],
  { installation, namespace }: Ownership,
): Instance[] {
  return machines.filter(
    (machine) =>
      machine.uid !== '' &&
      machine.installation !== '' &&
      machine.installation === installation &&
      (namespace === undefined || (machine.proxy?.namespace ?? namespace) === namespace),
  );
}

/**
 * The machines, oldest first, whose Proxy does not exist and which are old enough not to be in
 * the making. A creation time that is unreadable (0) never shields an orphan.
 */
export function findOrphans(
  own: readonly Instance[],
  at: { readonly live: ReadonlySet<string>; readonly nowMs: number; readonly minAgeMs: number },
): Instance[] {
  return own
    .filter(({ uid, createdAtMs }) => !at.live.has(uid) && at.nowMs - createdAtMs >= at.minAgeMs)
    .sort((a, b) => a.createdAtMs - b.createdAtMs || compareText(a.id, b.id));
}

/**
 * The orphans to delete now: each has been one in the sweep before as well, and they are at most
 * `SHARE_MAX` of the provider's `ownCount` machines. Oldest first, but those whose deletion has
 * been tried come last, so that one which cannot be deleted does not keep the others alive.
 */
export function selectDue(
  orphans: readonly Instance[],
  before: Sightings,
  ownCount: number,
): Instance[] {
  const attempts = (orphan: Instance) => before.get(orphanKey(orphan)) ?? 0;
  return orphans
    .filter((orphan) => before.has(orphanKey(orphan)))
    .sort((a, b) => attempts(a) - attempts(b))
    .slice(0, Math.max(1, Math.floor(ownCount * SHARE_MAX)));
}

/** What to remember of this sweep for the next: its orphans, with the attempts made so far. */
export function sightings(orphans: readonly Instance[], before: Sightings): Map<string, number> {
  const keys = orphans.slice(0, SIGHTINGS_MAX).map(orphanKey);
  return new Map(keys.map((key) => [key, before.get(key) ?? 0]));
}

/** A machine within its provider: a name that is taken again is another one. */
export function orphanKey({ id, uid }: Instance): string {
  return JSON.stringify([id, uid]);
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
