/** Failures of hosts as provider errors: the one place that decides on their class. */
import { KubeError } from '#agent/kube/errors.ts';
import { classifier } from '../classified.ts';
import type { ProviderErrorClass, ProviderOp } from '../errors.ts';
import { CapacityError } from './capacity.ts';
import { isLibvirtError, LibvirtError, LibvirtRefusedError } from './libvirt/client.ts';
import { SshError } from './ssh/errors.ts';

/** What libvirt passes on of the kernel and of QEMU when a host is full; it has no code for it. */
const EXHAUSTED =
  /No space left on device|Disk quota exceeded|Cannot allocate memory|cannot set up guest memory/i;

/** An edit of the Proxy or of the configuration alone heals it. */
export class UnusableError extends Error {
  override readonly name = 'UnusableError';
}

/** The Secret with the SSH credentials is not there or lacks a key; it may come a moment later. */
export class CredentialsError extends Error {
  override readonly name = 'CredentialsError';
}

/** The machine does not exist, and its name is free. */
export class GoneError extends Error {
  override readonly name = 'GoneError';
}

/** Failures of the backend as provider errors. */
export const classify = classifier(classOf);

export function classOf(error: unknown, op: ProviderOp): ProviderErrorClass {
  if (error instanceof GoneError) return op === 'get' ? 'NotFound' : 'Transient';
  if (error instanceof CapacityError) return 'QuotaExceeded';
  if (error instanceof UnusableError || error instanceof LibvirtRefusedError) return 'Permanent';
  if (error instanceof SshError) return error.permanent ? 'Permanent' : 'Transient';
  if (error instanceof KubeError) return 'Transient';
  return error instanceof LibvirtError ? classOfLibvirt(error) : 'Transient';
}

function classOfLibvirt(error: LibvirtError): ProviderErrorClass {
  if (EXHAUSTED.test(error.message)) return 'QuotaExceeded';
  const forGood = isLibvirtError(
    error,
    'xmlError',
    'configUnsupported',
    'invalidArgument',
    'noSupport',
    'operationUnsupported',
    'authFailed',
    'accessDenied',
    'noStoragePool',
    'noNetwork',
  );
  // What vanishes while it is looked at is looked at again: `get` asks for the domain by name first.
  return forGood ? 'Permanent' : 'Transient';
}
