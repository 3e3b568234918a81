/** Failures of Compute Engine as provider errors: the one place that decides on their class. */
import { classifier } from '../classified.ts';
import type { ProviderErrorClass } from '../errors.ts';
import { ComputeError } from './compute-api.ts';
import type { InstanceRef } from './id.ts';
import { isQuotaCode } from './operation.ts';

/** Reasons with which a 403 speaks of quotas or rates rather than of rights. */
const QUOTA_REASONS: ReadonlySet<string> = new Set([
  'quotaExceeded',
  'rateLimitExceeded',
  'userRateLimitExceeded',
  'dailyLimitExceeded',
  'limitExceeded',
]);
/** Refusals that heal by themselves, whatever their status. */
const PASSING_REASONS: ReadonlySet<string> = new Set([
  'resourceNotReady',
  'resourceInUseByAnotherResource',
  'backendError',
  'internalError',
]);
/** What only an edit heals: a bad argument, no or wrong credentials, no permission. */
const PERMANENT_STATUSES: ReadonlySet<number> = new Set([400, 401, 403]);
const MESSAGE_LENGTH_MAX = 600;

/** Failures of the backend as provider errors. */
export const classify = classifier(classOf, MESSAGE_LENGTH_MAX);

/** Class of a failed call. */
export function classOf(error: unknown): ProviderErrorClass {
  if (!(error instanceof ComputeError) || error.status === undefined) return 'Transient';
  const { status, reasons } = error;
  if (reasons.some((reason) => PASSING_REASONS.has(reason))) return 'Transient';
  if (status === 429 || reasons.some(isQuotaCode)) return 'QuotaExceeded';
  if (status === 403 && reasons.some((reason) => QUOTA_REASONS.has(reason))) return 'QuotaExceeded';
  // Of the API itself, and not of the instance (`saysNotFound` comes first): a project, an image.
  if (status === 404 && reasons.includes('notFound')) return 'Permanent';
  return PERMANENT_STATUSES.has(status) ? 'Permanent' : 'Transient';
}

/**
 * The API itself says that this instance is not there. A bare 404 may come from whatever stands in
 * front of it, and one that names the project says nothing of the instance.
 */
export function saysNotFound(error: unknown, { zone, name }: InstanceRef): boolean {
  if (!(error instanceof ComputeError) || error.status !== 404) return false;
  return error.message.includes(`/zones/${zone}/instances/${name}' was not found`);
}

export function hasStatus(error: unknown, status: number): boolean {
  return error instanceof ComputeError && error.status === status;
}
