/** Refusals: thrown by handlers as `ApiError`, turned into the contract's JSON in one place. */
import type { Context } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { z } from 'zod';
import { ERROR_STATUS, type ErrorCode, errorBodySchema } from '#shared/wire/errors.ts';
import type { EdgeEnv } from './context.ts';
import type { Log } from './log.ts';

/** Seconds after which a caller may try again when the ledger could not take the request. */
const OVERLOAD_RETRY_SECONDS = 1;
/** Names of unknown fields come from the caller, who must not choose the answer's length. */
const FIELD_LENGTH_MAX = 100;

export interface ErrorExtras {
  readonly headers?: Readonly<Record<string, string>>;
  /** Further fields of the body. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.extras = extras;
  }
}

/** The code of an answered error, for the log. */
export function codeOf(error: Error): ErrorCode {
  return toApiError(error).code;
}

/** Hono's error hook. What nobody expected is logged here, where it ends, and told to nobody. */
export function errorHook(log: Log): (error: Error, c: Context<EdgeEnv>) => Response {
  return (error, c) => {
    const refusal = toApiError(error);
    const requestId = c.get('requestId');
    if (refusal.code === 'internal' || refusal.code === 'overloaded') {
      log('error', 'request failed', { requestId, cause: error.message, stack: error.stack });
    }
    const { headers, fields } = refusal.extras;
    const body = { error: refusal.code, message: refusal.message, requestId, ...fields };
    return c.json(body, ERROR_STATUS[refusal.code], headers);
  };
}

/** `invalid_request` that names the first fault's field, with all faults in the message. */
export function invalidRequest(error: z.core.$ZodError, code: ErrorCode = 'invalid_request') {
  const faults = error.issues.slice(0, 5).map((issue) => `${fieldOf(issue)}: ${issue.message}`);
  const [first] = error.issues;
  const field = first === undefined ? 'body' : fieldOf(first);
  return new ApiError(code, faults.join('; ').slice(0, 5 * FIELD_LENGTH_MAX), {
    fields: { field },
  });
}

export function invalidField(field: string, message: string): ApiError {
  const name = field.slice(0, FIELD_LENGTH_MAX);
  return new ApiError('invalid_request', `${name}: ${message}`, { fields: { field: name } });
}

/** `overloaded`, with the time after which to try again. */
export function overloaded(message: string): ApiError {
  return new ApiError('overloaded', message, {
    headers: { 'retry-after': String(OVERLOAD_RETRY_SECONDS) },
    fields: { retryAfterSeconds: OVERLOAD_RETRY_SECONDS },
  });
}

/** Descriptions of refusals for a route's definition. */
export function refusals(...codes: ErrorCode[]) {
  const content = { 'application/json': { schema: errorBodySchema } };
  const byStatus = new Map<number, string[]>();
  for (const code of codes) {
    const status = ERROR_STATUS[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, names]) => [status, { description: names.join(', '), content }]),
  );
}

function fieldOf(issue: z.core.$ZodIssue): string {
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const path = [...issue.path, ...unknown].map(String).join('.');
  return path === '' ? 'body' : path.slice(0, FIELD_LENGTH_MAX);
}

function toApiError(error: Error): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof HTTPException && error.status === 400) {
    return new ApiError('invalid_request', 'the body is not valid JSON', {
      fields: { field: 'body' },
    });
  }
  if (isOverload(error)) {
    return overloaded('the ledger cannot take the request now; try again');
  }
  return new ApiError('internal', 'an unexpected error; the request id finds it in the log');
}

/** The runtime marks its own errors: the object has too much to do, or has just gone away. */
function isOverload(error: Error): boolean {
  return (
    ('overloaded' in error && error.overloaded === true) ||
    ('retryable' in error && error.retryable === true)
  );
}
