/**
 * A part of the stack that runs as a process of its own: its log, its supervision, and whether it
 * answers. Parts tell of themselves through one observer.
 */
import { join } from 'node:path';
import { request } from 'undici';
import type { Clock } from '#shared/clock.ts';
import { type ChildDeps, type ChildSpec, type Exit, startChild } from './process/child.ts';
import { boundLog, openLogFile } from './process/log-file.ts';
import { type Supervisor, supervise } from './process/supervisor.ts';

const POLL_MS = 50;
const ANSWER_TIMEOUT_MS = 2_000;
const TAIL_LINES = 8;

export interface PartObserver {
  /** It ended by itself and will be started again. */
  restarting(part: string, reason: string, inMs: number): void;
  /** It ended in a way that no new start heals. */
  failed(part: string, reason: string): void;
}

export interface PartDeps {
  readonly clock: Clock;
  readonly child: ChildDeps;
  readonly observer: PartObserver;
  readonly logDir: string;
}

export interface PartSpec extends Omit<ChildSpec, 'output'> {
  isFinal?(exit: Exit): boolean;
}

export interface Part {
  /** Last lines of its log, for a message about a failure. */
  tail(): string[];
  readonly supervisor: Supervisor;
  stop(graceMs: number): Promise<void>;
}

/** Starts a part and keeps it running. */
export function startPart(deps: PartDeps, spec: PartSpec): Part {
  const log = openLogFile(join(deps.logDir, `${spec.name}.log`));
  const tail = () => log.tail(TAIL_LINES);
  const bounding = new AbortController();
  const bounded = boundLog(deps.clock, log, bounding.signal);
  const supervisor = supervise({
    clock: deps.clock,
    start: () => startChild(deps.child, { ...spec, output: log.fd }),
    isFinal: (exit) => spec.isFinal?.(exit) ?? false,
    onEnd: (reason, inMs) => deps.observer.restarting(spec.name, reason, inMs),
    onFinal: (reason) => deps.observer.failed(spec.name, [reason, ...tail()].join('\n')),
  });
  return {
    tail,
    supervisor,
    async stop(graceMs) {
      await supervisor.stop(graceMs);
      bounding.abort();
      await bounded;
      log.rotateIfLarge();
      log.close();
    },
  };
}

/** Whether a URL answers 200 now. */
export async function answers(url: string, signal: AbortSignal): Promise<boolean> {
  try {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
    const response = await request(url, { signal: deadline, reset: true });
    await response.body.dump();
    return response.statusCode === 200;
  } catch {
    return false;
  }
}

/** Waits until a URL answers 200; rejects with the signal's reason. */
export async function whenAnswering(clock: Clock, url: string, signal: AbortSignal): Promise<void> {
  while (!(await answers(url, signal))) await clock.sleep(POLL_MS, signal);
}
