/** What several parts read out of a Proxy's status, told once. Pure. */
import type { Condition } from './condition.ts';
import type { ProxyStatus } from './proxy.ts';

export type ConditionType = 'Provisioned' | 'Healthy' | 'Ready' | 'Draining';

/**
 * Reasons of the Healthy condition that tell what a provider said of the machine, not what a probe
 * found: the machine does not run, or is not there.
 */
export const INSTANCE_DOWN_REASONS: ReadonlySet<string> = new Set([
  'InstanceStopped',
  'InstanceTerminated',
  'InstanceGone',
]);

export function findCondition(status: ProxyStatus, type: ConditionType): Condition | undefined {
  return status.conditions?.find((condition) => condition.type === type);
}

/**
 * Tells a managed machine from its successor. A machine that is made again keeps its id; the time
 * at which it was made tells the two apart, or, where its provider cannot tell, the time at which
 * it was ready. While the machine stays so must its identity: a change of it ends all leases.
 */
export function machineIdentity(status: ProxyStatus): string {
  const readySince = findCondition(status, 'Provisioned')?.lastTransitionTime;
  return `${status.providerID ?? ''}@${status.instanceCreationTime ?? readySince ?? ''}`;
}
