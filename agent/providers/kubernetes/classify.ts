/** Failures of the API server as provider errors: the one place that decides on their class. */
import { KubeError } from '#agent/kube/errors.ts';
import { ProviderError, type ProviderErrorClass, type ProviderOp } from '../errors.ts';

/**
 * Quota and lack of permission both come as 403. The quota plugin of the API server has worded its
 * refusal like this since the plugin exists, and client code across the ecosystem relies on it.
 */
const QUOTA_PATTERN = /exceeded quota|is limited to/i;

/** `error` as a ProviderError of `provider`; one that is already is passed through. */
export function classify(
  error: unknown,
  at: { readonly op: ProviderOp; readonly provider: string },
): ProviderError {
  if (error instanceof ProviderError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new ProviderError(classOf(error, at.op), at, message, { cause: error });
}

function classOf(error: unknown, op: ProviderOp): ProviderErrorClass {
  if (!(error instanceof KubeError)) return 'Transient';
  switch (error.reason) {
    case 'NotFound':
      // From create: the namespace vanished, and with it the Proxy in a moment.
      return op === 'create' || op === 'list' ? 'Transient' : 'NotFound';
    case 'Forbidden':
      return QUOTA_PATTERN.test(error.message) ? 'QuotaExceeded' : 'Permanent';
    case 'Unauthorized':
    case 'Invalid':
      return 'Permanent';
    case 'Other':
      return error.status >= 400 ? 'Permanent' : 'Transient';
    case 'AlreadyExists':
    case 'Conflict':
    case 'Gone':
    case 'TooManyRequests':
    case 'ServerError':
    case 'Unreachable':
      return 'Transient';
  }
}
