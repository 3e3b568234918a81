import { describe, expect, test } from 'vitest';
import {
  computePhase,
  type NewCondition,
  summarize,
  withCondition,
  withoutCondition,
} from '#agent/controller/status.ts';
import type { ProxyPhase, ProxyStatus } from '#shared/crd/proxy.ts';
import { findCondition } from '#shared/crd/proxy-status.ts';
import { managed, proxyWith } from './harness.ts';

const at = { generation: 1, nowMs: Date.UTC(2026, 0, 1) };
const external = proxyWith({ mode: 'External', endpoint: { host: 'h', port: 1 } });
const deleting = managed({}, { deletionTimestamp: '2026-01-01T00:00:00Z' });

function statusOf(provisioned?: string, healthy?: string): ProxyStatus {
  let status: ProxyStatus = {};
  for (const [type, text] of [
    ['Provisioned', provisioned],
    ['Healthy', healthy],
  ] as const) {
    if (text === undefined) continue;
    const [is = '', reason = ''] = text.split('/');
    const next = { type, status: is, reason, message: `m ${reason}` } as NewCondition;
    status = withCondition(status, next, at);
  }
  return status;
}

describe('phase', () => {
  test.each<[string, string | undefined, string | undefined, ProxyPhase]>([
    ['managed', undefined, undefined, 'Pending'],
    ['managed', 'False/Provisioning', undefined, 'Provisioning'],
    ['managed', 'False/ProviderUnavailable', undefined, 'Provisioning'],
    ['managed', 'False/Replacing', 'False/Timeout', 'Replacing'],
    ['managed', 'False/QuotaExceeded', undefined, 'Pending'],
    ['managed', 'False/CloudInitError', undefined, 'Pending'],
    ['managed', 'False/PermanentError', 'True/Healthy', 'Failed'],
    ['managed', 'False/SomethingNew', undefined, 'Provisioning'],
    ['managed', 'True/Created', undefined, 'Provisioning'],
    ['managed', 'True/Created', 'Unknown/NotProbed', 'Provisioning'],
    ['managed', 'True/Created', 'True/Healthy', 'Ready'],
    ['managed', 'True/Created', 'False/InstanceStopped', 'Unhealthy'],
    ['external', 'True/ExternalEndpoint', 'Unknown/NotProbed', 'Pending'],
    ['external', 'True/ExternalEndpoint', 'True/Healthy', 'Ready'],
    ['external', 'False/CredentialsError', 'Unknown/NotProbed', 'Pending'],
    ['deleting', 'True/Created', 'True/Healthy', 'Deleting'],
    ['deleting', 'False/PermanentError', undefined, 'Deleting'],
  ])('of a %s proxy with %s and %s is %s', (kind, provisioned, healthy, phase) => {
    const proxy = kind === 'managed' ? managed() : kind === 'external' ? external : deleting;
    expect(computePhase(proxy, statusOf(provisioned, healthy))).toBe(phase);
  });
});

describe('phase while a drain goes on', () => {
  const draining: NewCondition = { type: 'Draining', status: 'True', reason: 'R', message: 'd' };

  test.each<[string, string, ProxyPhase]>([
    ['managed', 'True/Created', 'Draining'],
    ['managed', 'False/Provisioning', 'Draining'],
    ['deleting', 'True/Created', 'Draining'],
    ['deleting', 'False/Deleting', 'Deleting'],
  ])('of a %s proxy with %s is %s', (kind, provisioned, phase) => {
    const proxy = kind === 'managed' ? managed() : deleting;
    const status = withCondition(statusOf(provisioned, 'True/Healthy'), draining, at);
    expect(computePhase(proxy, status)).toBe(phase);
    expect(computePhase(proxy, withoutCondition(status, 'Draining'))).not.toBe('Draining');
  });
});

describe('conditions', () => {
  const first: NewCondition = { type: 'Healthy', status: 'True', reason: 'A', message: 'a' };

  test('keep their transition time until their status changes', () => {
    const status = withCondition({}, first, at);
    const later = { generation: 2, nowMs: at.nowMs + 5000 };
    const same = withCondition(status, { ...first, reason: 'B', message: 'b' }, later);
    expect(findCondition(same, 'Healthy')).toEqual({
      type: 'Healthy',
      status: 'True',
      reason: 'B',
      message: 'b',
      observedGeneration: 2,
      lastTransitionTime: '2026-01-01T00:00:00.000Z',
    });
    const flipped = withCondition(same, { ...first, status: 'False' }, later);
    expect(findCondition(flipped, 'Healthy')?.lastTransitionTime).toBe('2026-01-01T00:00:05.000Z');
  });

  test('stand in a fixed order, those of others last', () => {
    let status: ProxyStatus = {
      conditions: [
        { type: 'Other', status: 'True', reason: 'X', message: '', lastTransitionTime: 't' },
      ],
    };
    for (const type of ['Ready', 'Draining', 'Healthy', 'Provisioned'] as const) {
      status = withCondition(status, { ...first, type }, at);
    }
    const types = status.conditions?.map((each) => each.type);
    expect(types).toEqual(['Provisioned', 'Healthy', 'Draining', 'Ready', 'Other']);
  });

  test('cut a message that would not fit', () => {
    const status = withCondition({}, { ...first, message: 'x'.repeat(40_000) }, at);
    expect(findCondition(status, 'Healthy')?.message.length).toBeLessThan(2000);
  });
});

describe('summary', () => {
  test.each([
    ['True/Created', 'True/Healthy', 'True/Ready'],
    ['True/Created', 'False/Timeout', 'False/Timeout'],
    ['True/Created', 'Unknown/NotProbed', 'False/NotProbed'],
    ['False/QuotaExceeded', 'Unknown/NotProbed', 'False/QuotaExceeded'],
    ['False/PermanentError', 'True/Healthy', 'False/PermanentError'],
  ])('of %s and %s is %s', (provisioned, healthy, ready) => {
    const options = { nowMs: at.nowMs, observed: true };
    const status = summarize(managed(), statusOf(provisioned, healthy), options);
    const condition = findCondition(status, 'Ready');
    expect(`${condition?.status}/${condition?.reason}`).toBe(ready);
    expect(status.observedGeneration).toBe(1);
  });

  test('is the same when it is made again, whatever the time', () => {
    const once = summarize(managed(), statusOf('True/Created', 'True/Healthy'), {
      nowMs: at.nowMs,
      observed: true,
    });
    const again = summarize(managed(), once, { nowMs: at.nowMs + 60_000, observed: true });
    expect(again).toEqual(once);
  });

  test('of a paused object leaves the observed generation alone', () => {
    const paused = managed({ paused: true }, { generation: 9 });
    const status = summarize(paused, { observedGeneration: 3 }, { nowMs: 0, observed: false });
    expect(status.observedGeneration).toBe(3);
  });
});
