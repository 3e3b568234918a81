/**
 * Keeps one part of the stack running: a process that ends is started again after a growing
 * pause, and each end is told. An exit that a new start cannot heal is told as such, once.
 */
import type { Clock } from '#shared/clock.ts';
import { reasonOf } from '../fault.ts';
import type { Child, Exit } from './child.ts';

const RESTART_MS_MIN = 500;
const RESTART_MS_MAX = 30_000;
/** One that ran this long has started well; its next end begins with the short pause again. */
const STABLE_MS = 60_000;

export interface SupervisorDeps {
  readonly clock: Clock;
  /** Starts the process. */
  start(): Promise<Child>;
  /** The process ended by itself, or could not be started; it is tried again after `restartMs`. */
  onEnd(reason: string, restartMs: number): void;
  /** Whether an exit cannot be healed by a new start: bad flags, bad configuration. */
  isFinal(exit: Exit): boolean;
  onFinal(reason: string): void;
}

export interface Supervisor {
  /** Ends the process and stops watching over it. Idempotent. */
  stop(graceMs: number): Promise<void>;
  /** The process that runs now, if one does. */
  current(): Child | undefined;
}

/** Starts the process at once. */
export function supervise(deps: SupervisorDeps): Supervisor {
  const stopping = new AbortController();
  let child: Child | undefined;
  let restartMs = RESTART_MS_MIN;
  let graceMsAtStop = 0;

  async function runOnce(): Promise<{ reason: string; final: boolean }> {
    const startedMs = deps.clock.monotonicMs();
    try {
      child = await deps.start();
      if (stopping.signal.aborted) await child.stop(graceMsAtStop);
      const exit = await child.exited;
      if (deps.clock.monotonicMs() - startedMs >= STABLE_MS) restartMs = RESTART_MS_MIN;
      return { reason: describe(exit), final: deps.isFinal(exit) };
    } catch (error) {
      return { reason: reasonOf(error), final: false };
    } finally {
      child = undefined;
    }
  }

  async function loop(): Promise<void> {
    while (!stopping.signal.aborted) {
      const { reason, final } = await runOnce();
      if (stopping.signal.aborted) return;
      if (final) {
        deps.onFinal(reason);
        return;
      }
      deps.onEnd(reason, restartMs);
      await deps.clock.sleep(restartMs, stopping.signal).catch(() => {});
      restartMs = Math.min(restartMs * 2, RESTART_MS_MAX);
    }
  }

  const ended = loop();
  return {
    current: () => child,
    async stop(graceMs) {
      // A process in the middle of its start is ended by `runOnce`, once it is there.
      graceMsAtStop = graceMs;
      stopping.abort();
      await child?.stop(graceMs);
      await ended;
    },
  };
}

function describe(exit: Exit): string {
  return exit.signal === undefined ? `exit ${exit.exitCode}` : exit.signal;
}
