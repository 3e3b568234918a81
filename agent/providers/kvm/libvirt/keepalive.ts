/** Notices that the other side has gone silent: asks when nothing was heard, and counts. */

/** What time is taken from; Node's timers or a stepped clock. */
export interface Timers {
  /** Calls `fn` once after `delayMs`, never synchronously. */
  setTimer(fn: () => void, delayMs: number): { cancel(): void };
}

export interface KeepaliveOptions {
  /** Silence after which the other side is asked, in milliseconds. */
  readonly intervalMs: number;
  /** Unanswered questions after which it is taken for dead. */
  readonly countMax: number;
}

export interface Keepalive {
  /** To be told of everything that comes from the other side. */
  heard(): void;
  stop(): void;
}

/**
 * `ask` sends a question; `isStuck` tells that it could not get out, because the other side takes
 * nothing for now: a host whose disk is slow is not dead. `onSilent` is called once.
 */
export function startKeepalive(
  timers: Timers,
  options: KeepaliveOptions,
  link: { ask(): void; isStuck(): boolean; onSilent(silentMs: number): void },
): Keepalive {
  let unanswered = 0;
  let stopped = false;
  let timer = timers.setTimer(tick, options.intervalMs);
  function tick(): void {
    if (stopped) return;
    if (unanswered >= options.countMax && !link.isStuck()) {
      link.onSilent((unanswered + 1) * options.intervalMs);
      return;
    }
    timer = timers.setTimer(tick, options.intervalMs);
    if (link.isStuck()) return;
    unanswered++;
    link.ask();
  }
  return {
    heard() {
      if (stopped) return;
      unanswered = 0;
      timer.cancel();
      timer = timers.setTimer(tick, options.intervalMs);
    },
    stop() {
      stopped = true;
      timer.cancel();
    },
  };
}
