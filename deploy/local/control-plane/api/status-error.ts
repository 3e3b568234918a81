/**
 * Failures as the API server words them: a `Status` object with code, reason and details. Clients
 * branch on `reason` and people read `message`, so both follow the real server to the letter.
 */
import type { JsonObject } from '../json.ts';
import { type FieldError, fieldErrorBody, renderFieldError } from '../schema/field-error.ts';

/** What a message names: the resource (or kind) and group a request was about. */
export interface StatusSubject {
  readonly group: string;
  /** Plural name of the resource. */
  readonly plural: string;
  readonly kind: string;
}

/** Thrown by every verb; the HTTP layer answers with `status` as it is. */
export class StatusError extends Error {
  readonly status: JsonObject;
  readonly code: number;
  readonly reason: string;

  constructor(code: number, reason: string, message: string, details?: JsonObject) {
    super(message);
    this.name = 'StatusError';
    this.code = code;
    this.reason = reason;
    this.status = {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message,
      ...(reason !== '' && { reason }),
      ...(details !== undefined && { details }),
      code,
    };
  }
}

/** `proxies.crawl.example.com`, or `pods` for the core group. */
export function qualifiedResource({ plural, group }: StatusSubject): string {
  return group === '' ? plural : `${plural}.${group}`;
}

function qualifiedKind({ kind, group }: StatusSubject): string {
  return group === '' ? kind : `${kind}.${group}`;
}

function details(subject: StatusSubject, name: string, extra: JsonObject = {}): JsonObject {
  return {
    ...(name !== '' && { name }),
    ...(subject.group !== '' && { group: subject.group }),
    kind: subject.plural,
    ...extra,
  };
}

export function badRequest(message: string): StatusError {
  return new StatusError(400, 'BadRequest', message);
}

export function unauthorized(): StatusError {
  return new StatusError(401, 'Unauthorized', 'Unauthorized');
}

/** RBAC says no; `message` is the sentence that the authorizer formed. */
export function forbidden(subject: StatusSubject, name: string, message: string): StatusError {
  return new StatusError(403, 'Forbidden', message, details(subject, name));
}

export function namespaceTerminating(
  subject: StatusSubject,
  name: string,
  namespace: string,
): StatusError {
  const message =
    `${qualifiedResource(subject)} "${name}" is forbidden: unable to create new content in ` +
    `namespace ${namespace} because it is being terminated`;
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  };
  return new StatusError(403, 'Forbidden', message, details(subject, name, { causes: [cause] }));
}

export function notFound(subject: StatusSubject, name: string): StatusError {
  const message = `${qualifiedResource(subject)} "${name}" not found`;
  return new StatusError(404, 'NotFound', message, details(subject, name));
}

/** No such path, group, version or resource. */
export function noSuchEndpoint(): StatusError {
  return new StatusError(404, 'NotFound', 'the server could not find the requested resource', {});
}

export function methodNotAllowed(
  message = 'the server does not allow this method on the requested resource',
): StatusError {
  return new StatusError(405, 'MethodNotAllowed', message, {});
}

export function notAcceptable(accepted: readonly string[]): StatusError {
  const message = `only the following media types are accepted: ${accepted.join(', ')}`;
  return new StatusError(406, 'NotAcceptable', message);
}

export function alreadyExists(subject: StatusSubject, name: string): StatusError {
  const message = `${qualifiedResource(subject)} "${name}" already exists`;
  return new StatusError(409, 'AlreadyExists', message, details(subject, name));
}

const STALE_OBJECT =
  'the object has been modified; please apply your changes to the latest version and try again';

export function conflict(
  subject: StatusSubject,
  name: string,
  why: string = STALE_OBJECT,
): StatusError {
  const message = `Operation cannot be fulfilled on ${qualifiedResource(subject)} "${name}": ${why}`;
  return new StatusError(409, 'Conflict', message, details(subject, name));
}

/** The request is meant for an object of this uid or version, and the stored one has another. */
export function preconditionFailed(
  subject: StatusSubject,
  name: string,
  what: 'UID' | 'ResourceVersion',
  wanted: string,
  actual: string,
): StatusError {
  const why = `Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${actual}`;
  return conflict(subject, name, why);
}

/** Server-side apply met fields of other managers; one cause per field. */
export function applyConflict(message: string, causes: JsonObject[]): StatusError {
  return new StatusError(409, 'Conflict', message, { causes });
}

/** The revision asked for has left the history; clients list again. */
export function expired(message: string): StatusError {
  return new StatusError(410, 'Expired', message);
}

export function tooLarge(limitBytes: number): StatusError {
  const message = `Request entity too large: limit is ${limitBytes}`;
  return new StatusError(413, 'RequestEntityTooLarge', message);
}

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message =
    'the body of the request was in an unknown format - accepted media types include: ' +
    accepted.join(', ');
  return new StatusError(415, 'UnsupportedMediaType', message);
}

/** Validation failed: one cause per field, all of them in the message. */
export function invalid(
  subject: StatusSubject,
  name: string,
  errors: readonly FieldError[],
): StatusError {
  const rendered = errors.map(renderFieldError);
  const list = rendered.length === 1 ? rendered[0] : `[${rendered.join(', ')}]`;
  const message = `${qualifiedKind(subject)} "${name}" is invalid: ${list}`;
  const causes = errors.map((error) => ({
    reason: error.type,
    message: fieldErrorBody(error),
    field: error.field,
  }));
  // Faults of an object name its kind where others name the resource.
  const ofKind = { ...subject, plural: subject.kind };
  return new StatusError(422, 'Invalid', message, details(ofKind, name, { causes }));
}

/** The resource version asked for is newer than anything this server has written. */
export function resourceVersionTooLarge(asked: number, current: number): StatusError {
  const cause = { reason: 'ResourceVersionTooLarge', message: 'Too large resource version' };
  const message = `Timeout: Too large resource version: ${asked}, current: ${current}`;
  return new StatusError(504, 'Timeout', message, { causes: [cause], retryAfterSeconds: 1 });
}

export function internalError(message: string): StatusError {
  return new StatusError(500, 'InternalError', `Internal error occurred: ${message}`, {
    causes: [{ message }],
  });
}
