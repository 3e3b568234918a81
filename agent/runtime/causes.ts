/** An error and what caused it. */

/** Errors wrap each other a few times at most. */
const CAUSES_MAX = 8;

/** `error`, its cause, the cause of that and so on; nothing of a value that is no error. */
export function* causesOf(error: unknown): Generator<Error, void, undefined> {
  let cause = error;
  for (let depth = 0; depth < CAUSES_MAX && cause instanceof Error; depth++) {
    yield cause;
    cause = cause.cause;
  }
}
