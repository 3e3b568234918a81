/** Failures of the API server as provider errors: the one place that decides on their class. */
import { KubeError } from '#agent/kube/errors.ts';
import { classifier } from '../classified.ts';
import type { ProviderErrorClass, ProviderOp } from '../errors.ts';

/**
 * Quota and lack of permission both come as 403. The quota plugin of the API server has worded its
 * refusal like this since the plugin exists, and client code across the ecosystem relies on it.
 */
const QUOTA_PATTERN = / is forbidden: exceeded quota: /;

/**
 * Refusals by admission, also 403, that heal by themselves: the service account of a new namespace
 * is not made yet, a quota is not counted yet, a namespace goes away and its Proxies with it.
 */
const PASSING_PATTERN =
  / is forbidden: (?:error looking up service account |status unknown for quota: )|because it is being terminated$/;

const REQUEST_TIMEOUT = 408;

/** How the API server names what is not there; a proxy in front of it does not. */
const NOT_FOUND_PATTERN = / "[^"]+" not found$/;

/** Failures of the backend as provider errors. */
export const classify = classifier(classOf);

/**
 * The API server itself says that the object is not there. A bare 404 may come from whatever stands
 * in front of it, and must not be taken for the end of a machine.
 */
export function saysNotFound(error: unknown): boolean {
  if (!(error instanceof KubeError) || error.reason !== 'NotFound') return false;
  return NOT_FOUND_PATTERN.test(error.message);
}

function classOf(error: unknown, op: ProviderOp): ProviderErrorClass {
  if (!(error instanceof KubeError)) return 'Transient';
  switch (error.reason) {
    case 'NotFound':
      // For get alone. From create: the namespace is gone, and with it the Proxy in a moment.
      return op === 'get' && saysNotFound(error) ? 'NotFound' : 'Transient';
    case 'Forbidden':
      if (QUOTA_PATTERN.test(error.message)) return 'QuotaExceeded';
      return PASSING_PATTERN.test(error.message) ? 'Transient' : 'Permanent';
    case 'Unauthorized':
    case 'Invalid':
      return 'Permanent';
    case 'Other':
      return error.status >= 400 && error.status !== REQUEST_TIMEOUT ? 'Permanent' : 'Transient';
    case 'AlreadyExists':
    case 'Conflict':
    case 'Gone':
    case 'TooManyRequests':
    case 'ServerError':
    case 'Unreachable':
      return 'Transient';
  }
}
