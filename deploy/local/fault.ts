/** What stops a start: one line for the person, and the exit code that goes with it. */

/** The message names the flag, file or program and says what to do; it never holds a secret. */
export class StartFault extends Error {
  override readonly name = 'StartFault';
  readonly exitCode: number;

  constructor(message: string, options?: { exitCode?: number; cause?: unknown }) {
    super(message, options?.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = options?.exitCode ?? 1;
  }
}

/** First line of whatever was thrown; enough to act on, short enough for a terminal. */
export function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split('\n', 1)[0] ?? text;
}

/** Node's error code (`ENOENT`, `EADDRINUSE`) of a thrown value, if it has one. */
export function errnoOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
