/** Failures of the API server as one error type; callers branch on `reason`, never on a text. */
import { z } from 'zod';
import { causesOf } from '#agent/runtime/causes.ts';
import { parseJson } from '#agent/runtime/response-body.ts';

/** The server's own words for a failure (`metav1.Status.reason`), as far as callers branch. */
export type KubeErrorReason =
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Forbidden'
  | 'Unauthorized'
  | 'Gone'
  | 'Invalid'
  | 'TooManyRequests'
  | 'ServerError'
  | 'Unreachable'
  | 'Other';

export class KubeError extends Error {
  override readonly name = 'KubeError';
  /** HTTP status; 0 when no answer came. */
  readonly status: number;
  readonly reason: KubeErrorReason;
  /** Whether the same request may succeed later without anybody changing anything. */
  readonly retryable: boolean;
  /** The server's wish, from `Retry-After` or the status details. */
  readonly retryAfterMs: number | undefined;

  constructor(
    fields: { status: number; reason: KubeErrorReason; retryAfterMs?: number | undefined },
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
    this.status = fields.status;
    this.reason = fields.reason;
    this.retryable = RETRYABLE.has(fields.reason);
    this.retryAfterMs = fields.retryAfterMs;
  }
}

const RETRYABLE: ReadonlySet<KubeErrorReason> = new Set([
  'Conflict',
  'Gone',
  'TooManyRequests',
  'ServerError',
  'Unreachable',
  'Unauthorized',
]);

/** A `metav1.Status`, as the body of a refusal and as the object of a watch's ERROR event. */
const statusSchema = z.object({
  code: z.number().int().optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
  details: z.object({ retryAfterSeconds: z.number().optional() }).optional(),
});

/** Longest excerpt of a body that is not a Status; proxies in between answer whole HTML pages. */
const EXCERPT_LENGTH_MAX = 200;
const RETRY_AFTER_MS_MAX = 60_000;

/** Error for an answer with a status of 400 or above. `at` says what was asked, such as `GET …`. */
export function errorFromResponse(
  at: string,
  status: number,
  body: string,
  retryAfter?: string,
): KubeError {
  const parsed = statusSchema.safeParse(parseJson(body));
  const said = parsed.success ? parsed.data : {};
  const message = said.message ?? excerpt(body);
  return new KubeError(
    {
      status,
      reason: reasonOf(status, said.reason),
      retryAfterMs: delayMs(retryAfter) ?? secondsToMs(said.details?.retryAfterSeconds),
    },
    `${at}: ${status}${message === '' ? '' : `: ${message}`}`,
  );
}

/** Error for the object of a watch's ERROR event. */
export function errorFromStatus(at: string, object: unknown): KubeError {
  const parsed = statusSchema.safeParse(object);
  const said = parsed.success ? parsed.data : {};
  const status = said.code ?? 500;
  return new KubeError(
    {
      status,
      reason: reasonOf(status, said.reason),
      retryAfterMs: secondsToMs(said.details?.retryAfterSeconds),
    },
    `${at}: ${status}: ${said.message ?? 'watch failed without a message'}`,
  );
}

/**
 * An API server that was away serves every key at once when it is back, and few keys have anything
 * to write: nobody is to wait minutes for it.
 */
const RETRY_WITHIN_MS = 30_000;

/** Longest wait after a failure that the API server is the cause of; undefined for any other. */
export function retryWithinMs(error: unknown): number | undefined {
  const isOurs = (cause: Error) => cause instanceof KubeError && cause.retryable;
  return [...causesOf(error)].some(isOurs) ? RETRY_WITHIN_MS : undefined;
}

export function isKubeError(error: unknown, reason: KubeErrorReason): boolean {
  return error instanceof KubeError && error.reason === reason;
}

function reasonOf(status: number, said: string | undefined): KubeErrorReason {
  switch (status) {
    case 401:
      return 'Unauthorized';
    case 403:
      return 'Forbidden';
    case 404:
      return 'NotFound';
    case 409:
      return said === 'AlreadyExists' ? 'AlreadyExists' : 'Conflict';
    case 410:
      return 'Gone';
    case 422:
      return 'Invalid';
    case 429:
      return 'TooManyRequests';
    default:
      return status >= 500 ? 'ServerError' : 'Other';
  }
}

function excerpt(body: string): string {
  const line = body.replaceAll(/\s+/g, ' ').trim();
  return line.length > EXCERPT_LENGTH_MAX ? `${line.slice(0, EXCERPT_LENGTH_MAX)}…` : line;
}

function delayMs(retryAfter: string | undefined): number | undefined {
  // The API server sends seconds; a date, which HTTP also allows, is left to our own backoff.
  return retryAfter !== undefined && /^\d+$/.test(retryAfter)
    ? secondsToMs(Number(retryAfter))
    : undefined;
}

function secondsToMs(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : Math.min(seconds * 1000, RETRY_AFTER_MS_MAX);
}
