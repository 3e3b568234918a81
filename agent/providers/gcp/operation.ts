/** What became of an operation that the API had accepted. Pure. */
import type { ProviderErrorClass } from '../errors.ts';
import { nameOfUrl } from './id.ts';
import type { OperationResource } from './resources.ts';

export type Outcome =
  | { readonly kind: 'running' }
  | { readonly kind: 'succeeded' }
  | {
      readonly kind: 'failed';
      readonly class: ProviderErrorClass;
      /** Codes and messages of the API; the message of a Proxy's condition. */
      readonly reason: string;
      /** Milliseconds since the epoch; 0 when the API does not tell. */
      readonly endedAtMs: number;
    };

const WITH_DETAILS = '_WITH_DETAILS';

/** Quota and stock-out: they pass when somebody else lets go, or when the limit is raised. */
const QUOTA_CODES: ReadonlySet<string> = new Set([
  'QUOTA_EXCEEDED',
  'QUOTA_LIMIT_EXCEEDED',
  'LIMIT_EXCEEDED',
  'RATE_LIMIT_EXCEEDED',
  'RESOURCE_OPERATION_RATE_EXCEEDED',
  'RESOURCE_EXHAUSTED',
  'RESOURCE_POOL_EXHAUSTED',
  'ZONE_RESOURCE_POOL_EXHAUSTED',
  'REGION_RESOURCE_POOL_EXHAUSTED',
  'STOCKOUT',
  'IP_SPACE_EXHAUSTED',
  'INSUFFICIENT_CAPACITY',
]);
/** Told by code, whatever status comes with it. */
const PERMANENT_CODES: ReadonlySet<string> = new Set([
  'RESOURCE_NOT_FOUND',
  'INVALID_USAGE',
  'INVALID_FIELD_VALUE',
  'INVALID_ARGUMENT',
  'INVALID_IMAGE',
  'PERMISSIONS_ERROR',
  'PERMISSION_DENIED',
  'FORBIDDEN',
  'UNSUPPORTED_OPERATION',
  'CONDITION_NOT_MET',
  'IMAGE_NOT_FOUND',
  'REQUIRED_FIELD_MISSING',
]);
const TRANSIENT_CODES: ReadonlySet<string> = new Set([
  'RESOURCE_NOT_READY',
  'RESOURCE_IN_USE_BY_ANOTHER_RESOURCE',
  'RESOURCE_ALREADY_EXISTS',
  'INTERNAL_ERROR',
  'SERVICE_UNAVAILABLE',
  'UNAVAILABLE',
  'OPERATION_CANCELED_BY_USER',
  'DEADLINE_EXCEEDED',
]);
const PERMANENT_STATUSES: ReadonlySet<number> = new Set([400, 401, 403, 404]);

/** The code, with or without details, means that there is none left at present. */
export function isQuotaCode(code: string): boolean {
  return QUOTA_CODES.has(bare(code));
}

export function outcomeOf(operation: OperationResource): Outcome {
  if (operation.status !== 'DONE') return { kind: 'running' };
  const { error, httpErrorStatusCode, endTime } = operation;
  if (error.length === 0 && httpErrorStatusCode < 400) return { kind: 'succeeded' };
  const endedAtMs = Date.parse(endTime);
  return {
    kind: 'failed',
    class: classOf(
      error.map(({ code }) => code),
      httpErrorStatusCode,
    ),
    reason: reasonOf(operation),
    endedAtMs: Number.isNaN(endedAtMs) ? 0 : endedAtMs,
  };
}

/** Quota goes before the rest: a wait is always right for it. Codes go before the status. */
function classOf(codes: readonly string[], status: number): ProviderErrorClass {
  if (codes.some(isQuotaCode)) return 'QuotaExceeded';
  if (codes.some((code) => PERMANENT_CODES.has(bare(code)))) return 'Permanent';
  if (codes.some((code) => TRANSIENT_CODES.has(bare(code)))) return 'Transient';
  if (status === 429) return 'QuotaExceeded';
  return PERMANENT_STATUSES.has(status) ? 'Permanent' : 'Transient';
}

function reasonOf({ error, httpErrorStatusCode }: OperationResource): string {
  if (error.length === 0) return `HTTP ${httpErrorStatusCode}`;
  return error
    .map(({ code, message }) => [code, message].filter((part) => part !== '').join(': '))
    .join('; ');
}

function bare(code: string): string {
  return code.endsWith(WITH_DETAILS) ? code.slice(0, -WITH_DETAILS.length) : code;
}

/** The operation is an insert or a deletion of the instance of that name. */
export function makesOrRemoves(
  name: string,
  { operationType, targetLink }: OperationResource,
): boolean {
  return ['insert', 'delete'].includes(operationType) && nameOfUrl(targetLink) === name;
}
