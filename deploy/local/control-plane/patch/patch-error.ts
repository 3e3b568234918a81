/** A patch that cannot be applied; the message is for the author of the patch. */

/**
 * `malformed` is 400 (not a patch at all), `unprocessable` is 422 (a patch that does not fit the
 * object), `too-large` is 413 (more operations than are taken), `untyped` is 500: a configuration
 * for server-side apply that its schema cannot type.
 */
export type PatchErrorKind = 'malformed' | 'unprocessable' | 'too-large' | 'untyped';

const CODES: Record<PatchErrorKind, number> = {
  malformed: 400,
  unprocessable: 422,
  'too-large': 413,
  untyped: 500,
};

/** Thrown by all patch types; the verb words it as a `Status`. */
export class PatchError extends Error {
  readonly kind: PatchErrorKind;
  /** HTTP status that the API server answers with. */
  readonly code: number;

  constructor(kind: PatchErrorKind, message: string) {
    super(message);
    this.name = 'PatchError';
    this.kind = kind;
    this.code = CODES[kind];
  }
}
