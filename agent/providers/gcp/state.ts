/** A Compute Engine instance as the contract's instance. Pure. */
import type { GcpBlock } from '../config-gcp.ts';
import { markOf } from '../mark.ts';
import type { Instance, InstanceState } from '../provider.ts';
import { formatId, nameOfUrl } from './id.ts';
import { proxyOf } from './labels.ts';
import type { InstanceResource } from './resources.ts';

/**
 * What does not run again by itself is replaced; so is what is stopping, since a deletion looks the
 * same, and a stop by hand ends there. REPAIRING is Compute Engine's own work on a broken host.
 */
const STATES: Readonly<Record<string, InstanceState>> = {
  PENDING: 'Provisioning',
  PROVISIONING: 'Provisioning',
  STAGING: 'Provisioning',
  REPAIRING: 'Provisioning',
  RUNNING: 'Running',
  PENDING_STOP: 'Stopped',
  STOPPING: 'Stopped',
  STOPPED: 'Stopped',
  SUSPENDING: 'Stopped',
  SUSPENDED: 'Stopped',
  DEPROVISIONING: 'Stopped',
  TERMINATED: 'Terminated',
};

const LEAVING: ReadonlySet<string> = new Set(['PENDING_STOP', 'STOPPING', 'DEPROVISIONING']);

/** State of a status; of a RUNNING instance it depends on the address as well. */
export function stateOf(status: string, ip: string | undefined): InstanceState {
  // A status that is not here yet counts as Stopped.
  const state = Object.hasOwn(STATES, status) ? STATES[status] : undefined;
  if (state === 'Running' && ip === undefined) return 'Provisioning';
  return state ?? 'Stopped';
}

/** The instance is on its way out, or is being stopped, which cannot be told apart. */
export function isLeaving({ status }: Pick<InstanceResource, 'status'>): boolean {
  return LEAVING.has(status);
}

/** `zone` is the one that was asked: the resource names it as a URL, and not always. */
export function instanceFrom(
  resource: InstanceResource,
  zone: string,
  addressMode: GcpBlock['addressMode'],
): Instance {
  const { name, status, statusMessage, labels, creationTimestamp, description } = resource;
  const ip = addressOf(resource, addressMode);
  const createdAtMs = Date.parse(creationTimestamp);
  const proxy = proxyOf(description);
  return {
    id: formatId({ zone: resource.zone === '' ? zone : nameOfUrl(resource.zone), name }),
    state: stateOf(status, ip),
    ...markOf(labels),
    createdAtMs: Number.isNaN(createdAtMs) ? 0 : createdAtMs,
    detail: statusMessage === '' ? status : `${status}: ${statusMessage}`,
    ...(ip === undefined ? {} : { ip }),
    ...(proxy === undefined ? {} : { proxy }),
  };
}

/** The address that is used, of the first interface. */
export function addressOf(
  { networkInterfaces }: Pick<InstanceResource, 'networkInterfaces'>,
  mode: GcpBlock['addressMode'],
): string | undefined {
  const [nic] = networkInterfaces;
  const internal = nic?.networkIP ?? '';
  const external = nic?.accessConfigs.find(({ natIP }) => natIP !== '')?.natIP ?? '';
  return (mode === 'internal' ? internal : external) || undefined;
}
