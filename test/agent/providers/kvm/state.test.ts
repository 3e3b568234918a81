import { expect, test } from 'vitest';
import { DOMAIN_STATE as STATE } from '#agent/providers/kvm/libvirt/client.ts';
import { type DomainFacts, stateOf } from '#agent/providers/kvm/state.ts';

const ip = '10.0.0.9';

test.each<[string, DomainFacts, string, string]>([
  ['no state', { state: STATE.none, reason: 0 }, 'Provisioning', 'no state'],
  ['running, with an address', { state: STATE.running, reason: 1, ip }, 'Running', 'running'],
  [
    'running, without one',
    { state: STATE.running, reason: 1 },
    'Provisioning',
    'running, without an address',
  ],
  ['blocked, with an address', { state: STATE.blocked, reason: 0, ip }, 'Running', 'blocked'],
  ['being started', { state: STATE.paused, reason: 11 }, 'Provisioning', 'starting up'],
  ['paused', { state: STATE.paused, reason: 1, phase: 'started' }, 'Stopped', 'paused'],
  ['paused by a full disk', { state: STATE.paused, reason: 5 }, 'Stopped', 'paused'],
  ['shutting down', { state: STATE.shutdown, reason: 0 }, 'Stopped', 'shutting down'],
  ['off', { state: STATE.shutoff, reason: 1, phase: 'started' }, 'Stopped', 'shut off'],
  ['off, of somebody else', { state: STATE.shutoff, reason: 1 }, 'Stopped', 'shut off'],
  [
    'off, its image not there yet',
    { state: STATE.shutoff, reason: 0, phase: 'preparing' },
    'Provisioning',
    'being prepared',
  ],
  [
    'off, its seed not there yet',
    { state: STATE.shutoff, reason: 0, phase: 'seeding' },
    'Provisioning',
    'without its seed yet',
  ],
  ['crashed', { state: STATE.crashed, reason: 0, phase: 'started' }, 'Stopped', 'crashed'],
  ['suspended', { state: STATE.suspended, reason: 0 }, 'Stopped', 'suspended'],
  ['in a state of a later libvirt', { state: 42, reason: 0, ip }, 'Stopped', 'unknown state 42'],
  [
    'being deleted',
    { state: STATE.running, reason: 0, phase: 'deleting', ip },
    'Stopped',
    'being deleted, running',
  ],
])('a domain that is %s', (_what, facts, state, detail) => {
  expect(stateOf(facts)).toEqual({ state, detail });
});
