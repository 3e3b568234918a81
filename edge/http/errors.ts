/** Refusals: thrown by handlers as `ApiError`, turned into the contract's JSON in one place. */
import type { z } from 'zod';
import { ERROR_STATUS, type ErrorCode } from '#shared/wire/errors.ts';
import { answerJson } from './answer.ts';
import type { EdgeContext } from './context.ts';
import type { Log } from './log.ts';

/** Seconds after which a caller may try again when nobody knows better. */
const RETRY_SECONDS = 1;
/** Names of unknown fields come from the caller, who must not choose the answer's length. */
const FIELD_LENGTH_MAX = 100;

export interface ErrorExtras {
  readonly headers?: Readonly<Record<string, string>>;
  /** Further fields of the body. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** What made it so; for the log alone. */
  readonly cause?: unknown;
}

export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly extras: ErrorExtras;

  constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    super(message, extras.cause === undefined ? {} : { cause: extras.cause });
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
export function errorHook(log: Log): (error: Error, c: EdgeContext) => Response {
  return (error, c) => {
    const refusal = toApiError(error);
    const requestId = c.get('requestId');
    if (refusal.code === 'internal') {
      log('error', 'request failed', { requestId, cause: error.message, stack: error.stack });
    }
    const { headers, fields } = refusal.extras;
    const body = { error: refusal.code, message: refusal.message, requestId, ...fields };
    return answerJson(c, ERROR_STATUS[refusal.code], body, headers);
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

/** A refusal for now: in field and header the time after which to try again. */
export function tryLater(
  code: ErrorCode,
  message: string,
  retryAfterSeconds = RETRY_SECONDS,
  cause?: unknown,
): ApiError {
  return new ApiError(code, message, {
    headers: { 'retry-after': String(retryAfterSeconds) },
    fields: { retryAfterSeconds },
    cause,
  });
}

function fieldOf(issue: z.core.$ZodIssue): string {
  const unknown = issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const path = [...issue.path, ...unknown].map(String).join('.');
  return path === '' ? 'body' : path.slice(0, FIELD_LENGTH_MAX);
}

function toApiError(error: Error): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError('internal', 'an unexpected error; the request id finds it in the log');
}
