/** The status as pure functions: conditions, phase, and what of both follows from the rest. */
import type { Condition, ConditionStatus } from '#shared/crd/condition.ts';
import type { Proxy, ProxyPhase, ProxyStatus } from '#shared/crd/proxy.ts';
import { type ConditionType, findCondition } from '#shared/crd/proxy-status.ts';

export type ProvisionedReason =
  | 'Created'
  | 'ExternalEndpoint'
  | 'Provisioning'
  | 'Replacing'
  | 'Deleting'
  | 'QuotaExceeded'
  | 'PermanentError'
  | 'CloudInitError'
  | 'CredentialsError'
  | 'ProviderUnavailable';

export interface NewCondition {
  readonly type: ConditionType;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

/** In this order they are written and shown. */
const ORDER: readonly string[] = ['Provisioned', 'Healthy', 'Draining', 'Ready'];
/** Cut below the schema's limit of a message, which counts characters. */
const MESSAGE_LENGTH_MAX = 1024;

/**
 * `status` with the condition set. `lastTransitionTime` moves only when the condition's own status
 * changes; reason and message may change without.
 */
export function withCondition(
  status: ProxyStatus,
  next: NewCondition,
  at: { readonly generation: number; readonly nowMs: number },
): ProxyStatus {
  const before = findCondition(status, next.type);
  const condition: Condition = {
    type: next.type,
    status: next.status,
    reason: next.reason,
    message: cut(next.message),
    observedGeneration: at.generation,
    lastTransitionTime:
      before?.status === next.status ? before.lastTransitionTime : new Date(at.nowMs).toISOString(),
  };
  const others = (status.conditions ?? []).filter((each) => each.type !== next.type);
  const conditions = [...others, condition].sort((a, b) => rank(a.type) - rank(b.type));
  return { ...status, conditions };
}

/** `status` without the condition; the same object when it has none of the type. */
export function withoutCondition(status: ProxyStatus, type: ConditionType): ProxyStatus {
  if (findCondition(status, type) === undefined) return status;
  return { ...status, conditions: status.conditions?.filter((each) => each.type !== type) };
}

function rank(type: string): number {
  const index = ORDER.indexOf(type);
  return index === -1 ? ORDER.length : index;
}

function cut(message: string): string {
  return message.length > MESSAGE_LENGTH_MAX ? `${message.slice(0, MESSAGE_LENGTH_MAX)}…` : message;
}

const PHASE_OF_UNPROVISIONED: Readonly<Record<ProvisionedReason, ProxyPhase>> = {
  Created: 'Provisioning',
  ExternalEndpoint: 'Pending',
  Provisioning: 'Provisioning',
  Replacing: 'Replacing',
  Deleting: 'Deleting',
  QuotaExceeded: 'Pending',
  PermanentError: 'Failed',
  CloudInitError: 'Pending',
  CredentialsError: 'Pending',
  ProviderUnavailable: 'Provisioning',
};

/** Where the proxy is in its life, from its conditions alone. */
export function computePhase(proxy: Proxy, status: ProxyStatus): ProxyPhase {
  const provisioned = findCondition(status, 'Provisioned');
  const isDraining = findCondition(status, 'Draining')?.status === 'True';
  // Once the destruction was tried, what became of it matters more.
  if (isDraining && provisioned?.reason !== 'Deleting') return 'Draining';
  if (proxy.metadata.deletionTimestamp !== undefined) return 'Deleting';
  if (provisioned === undefined) return 'Pending';
  if (provisioned.status !== 'True') return phaseOf(provisioned.reason);
  switch (findCondition(status, 'Healthy')?.status) {
    case 'True':
      return 'Ready';
    case 'False':
      return 'Unhealthy';
    default:
      return proxy.spec.mode === 'External' ? 'Pending' : 'Provisioning';
  }
}

function phaseOf(reason: string): ProxyPhase {
  for (const [known, phase] of Object.entries(PHASE_OF_UNPROVISIONED)) {
    if (known === reason) return phase;
  }
  return 'Provisioning';
}

/** The summary: True in phase Ready, otherwise the reason of what stands in the way. */
export function readyCondition(proxy: Proxy, status: ProxyStatus): NewCondition {
  const phase = computePhase(proxy, status);
  if (phase === 'Ready') {
    return { type: 'Ready', status: 'True', reason: 'Ready', message: 'the proxy is usable' };
  }
  const provisioned = findCondition(status, 'Provisioned');
  const healthy = findCondition(status, 'Healthy');
  const blocking = provisioned?.status === 'True' ? healthy : provisioned;
  if (phase === 'Draining' && !proxy.spec.paused) {
    const message = findCondition(status, 'Draining')?.message ?? 'waiting for leases to end';
    return { type: 'Ready', status: 'False', reason: 'Draining', message };
  }
  if (phase === 'Deleting' || proxy.metadata.deletionTimestamp !== undefined) {
    return { type: 'Ready', status: 'False', reason: 'Deleting', message: deleting(proxy, status) };
  }
  if (phase === 'Draining') {
    const message = 'paused: the drain, and what it is for, waits until spec.paused is false';
    return { type: 'Ready', status: 'False', reason: 'Draining', message };
  }
  return {
    type: 'Ready',
    status: 'False',
    reason: blocking?.reason ?? 'Pending',
    message: blocking?.message ?? 'not reconciled yet',
  };
}

function deleting(proxy: Proxy, status: ProxyStatus): string {
  if (proxy.spec.paused) return 'paused: the deletion waits until spec.paused is false';
  const provisioned = findCondition(status, 'Provisioned');
  return provisioned?.reason === 'Deleting' ? provisioned.message : 'being deleted';
}

/**
 * The status as it is written: phase and Ready follow from the rest. `observed` is false while the
 * object is paused: its present generation has not been acted on.
 */
export function summarize(
  proxy: Proxy,
  staged: ProxyStatus,
  at: { readonly nowMs: number; readonly observed: boolean },
): ProxyStatus {
  const generation = proxy.metadata.generation;
  const ready = readyCondition(proxy, staged);
  const before = findCondition(staged, 'Ready');
  const status = withCondition(staged, ready, {
    generation: at.observed ? generation : (before?.observedGeneration ?? 0),
    nowMs: at.nowMs,
  });
  return {
    ...status,
    phase: computePhase(proxy, status),
    ...(at.observed ? { observedGeneration: generation } : {}),
  };
}
