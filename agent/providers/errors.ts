/** The closed set of provider failures; the controller branches on the class alone. */

/**
 * - `NotFound`: the instance does not exist (from `get` this triggers a recreation).
 * - `QuotaExceeded`: quota, capacity or rate limit; a slow retry heals it.
 * - `Transient`: network, 5xx, timeouts, cancellation and anything unknown; retried with backoff.
 * - `Permanent`: only an edit of the Proxy or of the configuration heals it.
 */
export type ProviderErrorClass = 'NotFound' | 'QuotaExceeded' | 'Transient' | 'Permanent';

export type ProviderOp = 'create' | 'get' | 'delete' | 'disown' | 'list' | 'check';

export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly class: ProviderErrorClass;
  readonly op: ProviderOp;
  /** The configured name, not the type. */
  readonly provider: string;
  /**
   * `create` had submitted the machine, and it never came to be: its id stands for nothing, and
   * the class is that of a `create` that failed. Of `get` alone.
   */
  readonly neverMade: boolean;

  /** `message` never holds user-data, credentials or keys: it reaches status and events. */
  constructor(
    errorClass: ProviderErrorClass,
    at: { op: ProviderOp; provider: string },
    message: string,
    options?: { cause?: unknown; neverMade?: boolean },
  ) {
    super(`${at.provider}: ${at.op}: ${message}`, options);
    this.class = errorClass;
    this.op = at.op;
    this.provider = at.provider;
    this.neverMade = options?.neverMade ?? false;
  }
}

/** Class of any thrown value; what no provider classified is Transient. */
export function errorClass(error: unknown): ProviderErrorClass {
  return error instanceof ProviderError ? error.class : 'Transient';
}
