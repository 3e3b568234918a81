/** What the state of a domain means for the machine. Pure. */
import type { InstanceState } from '../provider.ts';
import { DOMAIN_STATE } from './libvirt/client.ts';
import type { Phase } from './metadata.ts';

/** `VIR_DOMAIN_PAUSED_STARTING_UP`: QEMU is there, and its processors do not run yet. */
const PAUSED_STARTING_UP = 11;

const WORDS: Readonly<Record<number, string>> = {
  [DOMAIN_STATE.none]: 'no state',
  [DOMAIN_STATE.running]: 'running',
  [DOMAIN_STATE.blocked]: 'blocked',
  [DOMAIN_STATE.paused]: 'paused',
  [DOMAIN_STATE.shutdown]: 'shutting down',
  [DOMAIN_STATE.shutoff]: 'shut off',
  [DOMAIN_STATE.crashed]: 'crashed',
  [DOMAIN_STATE.suspended]: 'suspended',
};

export interface DomainFacts {
  /** `DOMAIN_STATE` and the reason that goes with it. */
  readonly state: number;
  readonly reason: number;
  /** Absent for domains that this provider did not make. */
  readonly phase?: Phase | undefined;
  readonly ip?: string | undefined;
}

/**
 * The state, and libvirt's word for it. Whatever does not come up by itself is Stopped: machines are
 * replaced rather than repaired.
 */
export function stateOf(facts: DomainFacts): { state: InstanceState; detail: string } {
  const { state, reason, phase, ip } = facts;
  const word = WORDS[state] ?? `unknown state ${state}`;
  if (phase === 'deleting') return { state: 'Stopped', detail: `being deleted, ${word}` };
  switch (state) {
    case DOMAIN_STATE.none:
      return { state: 'Provisioning', detail: word };
    case DOMAIN_STATE.running:
    case DOMAIN_STATE.blocked:
      if (ip !== undefined) return { state: 'Running', detail: word };
      return { state: 'Provisioning', detail: `${word}, without an address` };
    case DOMAIN_STATE.paused:
      return reason === PAUSED_STARTING_UP
        ? { state: 'Provisioning', detail: 'starting up' }
        : { state: 'Stopped', detail: word };
    case DOMAIN_STATE.shutoff:
      if (phase === 'preparing') return { state: 'Provisioning', detail: 'being prepared' };
      if (phase === 'seeding') return { state: 'Provisioning', detail: 'without its seed yet' };
      return { state: 'Stopped', detail: word };
    default:
      return { state: 'Stopped', detail: word };
  }
}
