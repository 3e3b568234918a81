import { describe, expect, test } from 'vitest';
import { HostChecker, offersKvm, verdictOn } from '#agent/providers/kvm/check.ts';
import { CredentialsError } from '#agent/providers/kvm/classify.ts';
import type { Hosts } from '#agent/providers/kvm/hosts.ts';
import {
  ERROR_CODE,
  LibvirtConnectionError,
  LibvirtError,
  LibvirtRefusedError,
  POOL_STATE,
} from '#agent/providers/kvm/libvirt/client.ts';
import { SshError } from '#agent/providers/kvm/ssh/errors.ts';
import { DeadlineError } from '#agent/runtime/deadline.ts';
import { FakeLibvirtHost, refuse } from '#test/fakes/libvirt-host.ts';
import { configWith } from './block.ts';

const [host] = configWith().kvm.hosts;
if (host === undefined) throw new Error('no host');
const signal = new AbortController().signal;
const libvirt = (code: keyof typeof ERROR_CODE) =>
  new LibvirtError({ code: ERROR_CODE[code], domain: 0, level: 2, message: 'no' });

test.each<[unknown, string]>([
  [new SshError('unreachable', 'no route'), 'Unreachable'],
  [new SshError('lost', 'lost'), 'Unreachable'],
  [new SshError('hostKey', 'another key'), 'HostKeyRejected'],
  [new SshError('auth', 'not let in'), 'Unauthorized'],
  [new SshError('credentials', 'no key'), 'CredentialsInvalid'],
  [new SshError('socket', 'no socket'), 'SocketUnavailable'],
  [new CredentialsError('no Secret'), 'CredentialsMissing'],
  [new LibvirtRefusedError('auth', 'polkit'), 'LibvirtAuthRequired'],
  [new LibvirtRefusedError('version', 'old'), 'LibvirtTooOld'],
  [new LibvirtConnectionError('ended', 'gone'), 'Unreachable'],
  [new LibvirtConnectionError('protocol', 'garbage'), 'APIError'],
  [libvirt('noStoragePool'), 'PoolNotFound'],
  [libvirt('noNetwork'), 'NetworkNotFound'],
  [libvirt('accessDenied'), 'Forbidden'],
  [libvirt('authFailed'), 'Forbidden'],
  [libvirt('internalError'), 'APIError'],
  [new DeadlineError(15_000), 'Timeout'],
  ['anything', 'APIError'],
])('%s is told as %s', (error, reason) => {
  expect(verdictOn(error, signal)).toMatchObject({ reason });
  expect(verdictOn(error, AbortSignal.abort())).toMatchObject({ reason: 'Timeout' });
});

describe('a host', () => {
  test('on which machines can be made is ready, and tells what it is', async () => {
    const checker = new HostChecker(new FakeLibvirtHost().hosts());
    expect(await checker.check(host, signal)).toEqual({
      name: 'hv1',
      ready: true,
      reason: 'Reachable',
      message: 'pool default and network default can be used',
      details: {
        version: '9.0.0',
        hostname: 'hv1.example.net',
        poolState: 'running',
        poolCapacity: '200.0 GiB',
        poolFree: '100.0 GiB',
        memory: '64.0 GiB',
        memoryAvailable: '32.0 GiB',
      },
    });
  });

  test.each<[string, (fake: FakeLibvirtHost) => void, string]>([
    [
      'PoolNotRunning',
      (fake) => {
        fake.poolState = POOL_STATE.inaccessible;
      },
      'pool default is inaccessible',
    ],
    [
      'NetworkNotActive',
      (fake) => {
        fake.networkActive = false;
      },
      'network default is not active',
    ],
  ])('is not, for %s', async (reason, change, message) => {
    const fake = new FakeLibvirtHost();
    change(fake);
    const status = await new HostChecker(fake.hosts()).check(host, signal);
    expect(status).toMatchObject({ ready: false, reason, message });
  });

  test('is asked for no more than there is to look at', async () => {
    const fake = new FakeLibvirtHost();
    const hosts = fake.hosts({
      before: (call) => {
        if (call === 'refreshPool') refuse('internalError', 'a check changes nothing');
      },
    });
    await new HostChecker(hosts).check(host, signal);
    expect(fake.calls.length).toBeLessThan(10);
    expect(fake.calls.join()).not.toMatch(/define|create|delete|start|destroy|set|upload/i);
  });
});

describe('a probe that does not end', () => {
  /** Hosts of whom one never lets go, whatever the signal says, until it is told to. */
  function stuck() {
    const probes: (() => void)[] = [];
    const hosts = {
      dedicated: () =>
        new Promise<never>((_resolve, reject) => {
          probes.push(() => reject(new Error('in the end')));
        }),
    } as unknown as Hosts;
    return { probes, checker: new HostChecker(hosts) };
  }

  test('is given up at the deadline, and no second one is begun beside it', async () => {
    const { probes, checker } = stuck();
    for (let round = 0; round < 3; round++) {
      const status = await checker.check(host, AbortSignal.timeout(20));
      expect(status).toMatchObject({ ready: false, reason: 'Timeout' });
      expect(probes).toHaveLength(1);
    }
    const waiting = checker.check(host, AbortSignal.timeout(1_000));
    probes[0]?.();
    await expect.poll(() => probes.length).toBe(2);
    probes[1]?.();
    expect(await waiting).toMatchObject({ reason: 'APIError', message: 'in the end' });
  });

  test('is none when the signal is aborted already', async () => {
    const { probes, checker } = stuck();
    expect(await checker.check(host, AbortSignal.abort())).toMatchObject({ reason: 'Timeout' });
    expect(probes.length).toBeLessThan(2);
  });
});

test.each([
  [
    "<capabilities><guest><arch name='x86_64'><domain type='qemu'/></arch></guest></capabilities>",
    false,
  ],
  [
    "<capabilities><guest><arch name='i686'><domain type='kvm'/></arch></guest><guest><arch name='x86_64'><domain type='qemu'/><domain type='kvm'/></arch></guest></capabilities>",
    true,
  ],
  [
    "<capabilities><guest><arch name='aarch64'><domain type='kvm'/></arch></guest></capabilities>",
    false,
  ],
  ['<capabilities/>', false],
  ['', false],
])('%s tells whether there is KVM', (capabilities, offers) => {
  expect(offersKvm(capabilities)).toBe(offers);
});
