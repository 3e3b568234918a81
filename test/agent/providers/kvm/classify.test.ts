import { expect, test } from 'vitest';
import { KubeError } from '#agent/kube/errors.ts';
import { ProviderError } from '#agent/providers/errors.ts';
import { CapacityError } from '#agent/providers/kvm/capacity.ts';
import {
  CredentialsError,
  classify,
  classOf,
  GoneError,
  UnusableError,
} from '#agent/providers/kvm/classify.ts';
import { ImageError } from '#agent/providers/kvm/download.ts';
import {
  ERROR_CODE,
  LibvirtConnectionError,
  LibvirtError,
  LibvirtRefusedError,
  LibvirtUploadError,
} from '#agent/providers/kvm/libvirt/client.ts';
import { SshError } from '#agent/providers/kvm/ssh/errors.ts';
import { DeadlineError } from '#agent/runtime/deadline.ts';

const libvirt = (code: keyof typeof ERROR_CODE, message = 'no') =>
  new LibvirtError({ code: ERROR_CODE[code], domain: 10, level: 2, message });
const forbidden = new KubeError({ status: 403, reason: 'Forbidden' }, 'secrets is forbidden');

test.each<[unknown, string]>([
  [new GoneError('gone'), 'Transient'],
  [new CapacityError('full'), 'QuotaExceeded'],
  [new UnusableError('bad'), 'Permanent'],
  [new CredentialsError('no Secret'), 'Transient'],
  [new SshError('hostKey', 'another key'), 'Permanent'],
  [new SshError('auth', 'not let in'), 'Permanent'],
  [new SshError('credentials', 'no key'), 'Permanent'],
  [new SshError('unreachable', 'no route'), 'Transient'],
  [new SshError('socket', 'no socket'), 'Transient'],
  [new SshError('lost', 'lost'), 'Transient'],
  [new SshError('closed', 'closed'), 'Transient'],
  [new LibvirtRefusedError('auth', 'polkit'), 'Permanent'],
  [new LibvirtRefusedError('version', 'too old'), 'Permanent'],
  [new LibvirtConnectionError('ended', 'ended'), 'Transient'],
  [new LibvirtConnectionError('protocol', 'garbage'), 'Transient'],
  [new LibvirtUploadError('short', 1, 'short'), 'Transient'],
  [libvirt('noDomain'), 'Transient'],
  [libvirt('noStorageVolume'), 'Transient'],
  [libvirt('noStoragePool'), 'Permanent'],
  [libvirt('noNetwork'), 'Permanent'],
  [libvirt('xmlError'), 'Permanent'],
  [libvirt('configUnsupported'), 'Permanent'],
  [libvirt('invalidArgument'), 'Permanent'],
  [libvirt('noSupport'), 'Permanent'],
  [libvirt('operationUnsupported'), 'Permanent'],
  [libvirt('authFailed'), 'Permanent'],
  [libvirt('accessDenied'), 'Permanent'],
  [libvirt('operationInvalid', "storage pool 'a' is not active"), 'Transient'],
  [libvirt('operationFailed'), 'Transient'],
  [libvirt('operationTimeout'), 'Transient'],
  [libvirt('internalError'), 'Transient'],
  [libvirt('rpc'), 'Transient'],
  [libvirt('resourceBusy'), 'Transient'],
  [libvirt('systemError', "cannot extend file '/a': No space left on device"), 'QuotaExceeded'],
  [libvirt('internalError', 'qemu-kvm: cannot set up guest memory: pc.ram'), 'QuotaExceeded'],
  [libvirt('internalError', 'Cannot allocate memory'), 'QuotaExceeded'],
  [new LibvirtError({ code: 9999, domain: 0, level: 2, message: null }), 'Transient'],
  [new ImageError('wrong', { lasting: true }), 'Transient'],
  [forbidden, 'Transient'],
  [new DeadlineError(60_000), 'Transient'],
  [new DOMException('aborted', 'AbortError'), 'Transient'],
  [new Error('anything'), 'Transient'],
  ['no error at all', 'Transient'],
])('%s is %s to create', (error, expected) => {
  expect(classOf(error, 'create')).toBe(expected);
});

test.each(['create', 'delete', 'disown', 'list'] as const)('%s is never NotFound', (op) => {
  expect(classOf(new GoneError('gone'), op)).not.toBe('NotFound');
});

test('only what is known to be gone is NotFound to get', () => {
  expect(classOf(new GoneError('gone'), 'get')).toBe('NotFound');
  expect(classOf(libvirt('noDomain'), 'get')).toBe('Transient');
  expect(classOf(libvirt('noStoragePool'), 'get')).toBe('Permanent');
});

test('a message names provider and operation; the cause is kept', () => {
  const cause = libvirt('rpc', 'broken');
  const error = classify(cause, { op: 'get', provider: 'home' });
  expect(error.message).toBe('home: get: broken');
  expect(error.cause).toBe(cause);
  expect(classify(error, { op: 'list', provider: 'other' })).toBe(error);
  expect(error).toBeInstanceOf(ProviderError);
});
