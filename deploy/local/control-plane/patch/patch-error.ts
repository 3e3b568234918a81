/** A patch that cannot be applied; the message is for the author of the patch. */

/**
 * `malformed` is 400 (not a patch at all), `unprocessable` is 422 (a patch that does not fit the
 * object).
 */
export type PatchErrorKind = 'malformed' | 'unprocessable';

const CODES: Record<PatchErrorKind, number> = { malformed: 400, unprocessable: 422 };

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
