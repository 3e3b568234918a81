/** Structured log lines: one JSON object each, constant message, facts as fields, no secrets. */
import type { Clock } from '#shared/clock.ts';

export type LogLevel = 'info' | 'warn' | 'error';
export type Log = (
  level: LogLevel,
  msg: string,
  fields?: Readonly<Record<string, unknown>>,
) => void;

export function createLog(clock: Clock): Log {
  return (level, msg, fields = {}) => {
    const line = JSON.stringify({
      level,
      time: new Date(clock.now()).toISOString(),
      msg,
      ...fields,
    });
    console[level === 'info' ? 'log' : level](line);
  };
}
