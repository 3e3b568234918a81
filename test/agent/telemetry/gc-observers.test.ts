import { Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { ProviderError } from '#agent/providers/errors.ts';
import type { Instance } from '#agent/providers/provider.ts';
import { gcObserver } from '#agent/telemetry/gc-observers.ts';
import { recordingLog, samplesOf } from './recording.ts';

const orphan: Instance = {
  id: 'zones/a/one',
  uid: 'uid-1',
  installation: 'ours',
  state: 'Running',
  createdAtMs: 0,
};

function setUp() {
  const registry = new Registry();
  const { log, lines } = recordingLog();
  return { observer: gcObserver(log, registry), lines, samples: () => samplesOf(registry) };
}

test('each kill is a warning that names the machine, and is counted by result', async () => {
  const { observer, lines, samples } = setUp();
  observer.deleted('local', orphan);
  const quota = new ProviderError(
    'QuotaExceeded',
    { op: 'delete', provider: 'local' },
    'slow down',
  );
  observer.deleteFailed('local', orphan, quota);
  const machine = { provider: 'local', id: 'zones/a/one', uid: 'uid-1' };
  expect(lines).toEqual([
    {
      level: 'warn',
      fields: expect.objectContaining(machine),
      message: 'orphaned machine deleted',
    },
    {
      level: 'warn',
      fields: expect.objectContaining({ ...machine, err: quota }),
      message: expect.stringContaining('trying again'),
    },
  ]);
  expect(await samples()).toEqual([
    'proxy_operator_gc_deletions_total{provider="local",result="ok"} 1',
    'proxy_operator_gc_deletions_total{provider="local",result="QuotaExceeded"} 1',
  ]);
});

test('the gauge of orphans goes with its provider', async () => {
  const { observer, samples } = setUp();
  observer.orphans('local', 3, 1);
  observer.swept('completed');
  expect(await samples()).toEqual([
    'proxy_operator_gc_sweeps_total{result="completed"} 1',
    'proxy_operator_gc_orphans{provider="local"} 3',
  ]);
  observer.providerForgotten('local');
  expect((await samples()).join()).not.toContain('gc_orphans{');
});

test('a lasting refusal is told once, and again after sweeps went on', () => {
  const { observer, lines } = setUp();
  const refuse = (reason: string) => {
    observer.refused(reason);
    observer.swept('refused');
  };
  refuse('out of touch');
  refuse('out of touch');
  observer.swept('completed');
  refuse('out of touch');
  refuse('one namespace');
  expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(3);
});

test('what keeps machines alive is a warning; a quiet sweep is not', () => {
  const { observer, lines } = setUp();
  observer.orphans('local', 0, 0);
  observer.swept('completed');
  expect(lines.filter(({ level }) => level !== 'debug')).toEqual([]);
  observer.heldBack('local', 4);
  observer.providerSkipped('local', new Error('away'));
  observer.failed(new Error('504'));
  expect(lines.filter(({ level }) => level === 'warn')).toHaveLength(3);
});
