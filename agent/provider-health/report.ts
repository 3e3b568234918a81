/** From the verdicts of one check to the status of a ProviderHealth object. Pure. */
import type { TargetStatus } from '#agent/providers/provider.ts';
import type { ProviderHealthStatus, TargetHealth } from '#shared/crd/provider-health.ts';

/** What one round found of one provider; `targets` is absent when its type has no check. */
export interface Finding {
  readonly type: string;
  readonly targets?: readonly TargetStatus[];
  /** When the check ended, in milliseconds since the epoch. */
  readonly checkedAtMs: number;
}

/** An object of the API is no place for a whole data centre; the rest is counted only. */
export const TARGETS_MAX = 200;
export const MESSAGE_LENGTH_MAX = 1_024;
export const DETAILS_MAX = 32;
const DETAIL_LENGTH_MAX = 256;

/**
 * The status to write. `previous` is the one that stands in the object: a target's
 * `lastTransitionTime` is taken over from it unless `ready` flipped.
 */
export function reportStatus(
  { type, targets, checkedAtMs }: Finding,
  previous: ProviderHealthStatus | undefined,
): ProviderHealthStatus {
  if (targets === undefined) {
    const message = 'providers of this type have no check';
    return { type, ready: 'Unknown', reason: 'Unsupported', message };
  }
  const lastCheckTime = new Date(checkedAtMs).toISOString();
  const distinct = uniqueByName(targets);
  const before = new Map(previous?.targetStatuses?.map((target) => [target.name, target]));
  return {
    type,
    ...summary(distinct),
    lastCheckTime,
    targetStatuses: distinct
      .slice(0, TARGETS_MAX)
      .map((target) => targetHealth(target, before.get(target.name), lastCheckTime)),
  };
}

/** The API server takes no two entries of one name; the first one counts. */
export function uniqueByName(targets: readonly TargetStatus[]): TargetStatus[] {
  const byName = new Map<string, TargetStatus>();
  for (const target of targets) if (!byName.has(target.name)) byName.set(target.name, target);
  return [...byName.values()];
}

function summary(
  targets: readonly TargetStatus[],
): Pick<ProviderHealthStatus, 'ready' | 'reason' | 'message' | 'targets'> {
  const down = targets.filter(({ ready }) => !ready);
  const count = `${targets.length - down.length}/${targets.length}`;
  if (targets.length === 0) {
    const message = 'the provider names no target to check';
    return { ready: 'Unknown', reason: 'NoTargets', message, targets: count };
  }
  const [first] = down;
  if (first === undefined) {
    const message = 'every target is ready';
    return { ready: 'True', reason: 'AllTargetsReady', message, targets: count };
  }
  const others = down.length === 1 ? '' : ` (and ${down.length - 1} more)`;
  const message = cut(`${first.name}: ${first.reason}: ${first.message}${others}`);
  return { ready: 'False', reason: 'TargetsNotReady', message, targets: count };
}

function targetHealth(
  { name, ready, reason, message, details }: TargetStatus,
  before: TargetHealth | undefined,
  nowTime: string,
): TargetHealth {
  const lastTransitionTime = before?.ready === ready ? before.lastTransitionTime : nowTime;
  const shown = { name, ready, reason, message: cut(message), lastTransitionTime };
  if (details === undefined) return shown;
  const entries = Object.entries(details).slice(0, DETAILS_MAX);
  const short = entries.map(([key, value]) => [key, cut(value, DETAIL_LENGTH_MAX)]);
  return { ...shown, details: Object.fromEntries(short) };
}

function cut(text: string, lengthMax = MESSAGE_LENGTH_MAX): string {
  return text.length > lengthMax ? `${text.slice(0, lengthMax - 1)}…` : text;
}
