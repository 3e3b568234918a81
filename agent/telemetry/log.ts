/**
 * The log: one JSON object a line on stdout (or the same for a person's eyes). Secrets are taken
 * out by the name of their field and, in messages and errors, by their form.
 */
import { Writable } from 'node:stream';
import { pino } from 'pino';
import type { LogFormat, LogLevel } from '../config.ts';
import { createScrubber, type Scrubber } from './scrub.ts';

/** Fields first, then a constant message, as pino has it. */
export interface Log {
  trace(fields: object, message: string): void;
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** The same log with `fields` on every line. */
  child(fields: Record<string, unknown>): Log;
}

export interface LogOptions {
  readonly level: LogLevel;
  readonly format: LogFormat;
  readonly scrubber?: Scrubber;
  /** Where lines go; stdout by default. */
  readonly destination?: { write(line: string): void };
}

/** Whatever carries one of these names is a secret, at any of the first levels. */
const SECRET_FIELDS = [
  'password',
  'token',
  'authorization',
  'credentials',
  'cloudInit',
  'userData',
];
const DEPTHS = ['', '*.', '*.*.'];
/** Chains of causes are followed this far. */
const CAUSES_MAX = 5;

export async function createLog(options: LogOptions): Promise<Log> {
  const scrubber = options.scrubber ?? createScrubber();
  const destination = options.destination ?? process.stdout;
  const settings = {
    level: options.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: {
      paths: DEPTHS.flatMap((depth) => SECRET_FIELDS.map((field) => `${depth}${field}`)),
      censor: '***',
    },
    serializers: { err: (error: unknown) => describeError(error, scrubber) },
    hooks: { streamWrite: (line: string) => scrubber.scrub(line) },
  };
  if (options.format === 'json') return narrow(pino(settings, destination));
  // Not loaded where nobody looks at it.
  const { default: pretty } = await import('pino-pretty');
  return narrow(pino(settings, pretty({ destination: writable(destination), sync: true })));
}

/** pino's own type admits any property, `then` included, and so cannot leave an async function. */
function narrow(log: Log): Log {
  return log;
}

/** An error as fields; the stack only of what is a bug or has no better explanation. */
function describeError(error: unknown, scrubber: Scrubber, depth = 0): unknown {
  if (!(error instanceof Error)) return scrubber.scrub(String(error));
  const expected = 'class' in error || 'reason' in error || 'code' in error;
  return {
    name: error.name,
    message: scrubber.scrub(error.message),
    ...('code' in error ? { code: error.code } : {}),
    ...('class' in error ? { class: error.class } : {}),
    ...('reason' in error && typeof error.reason === 'string' ? { reason: error.reason } : {}),
    ...(expected ? {} : { stack: scrubber.scrub(error.stack ?? '') }),
    ...(error.cause === undefined || depth >= CAUSES_MAX
      ? {}
      : { cause: describeError(error.cause, scrubber, depth + 1) }),
  };
}

function writable(destination: { write(line: string): void }): NodeJS.WritableStream {
  return new Writable({
    write(chunk, _encoding, done) {
      destination.write(String(chunk));
      done();
    },
  });
}
