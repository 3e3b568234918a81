/**
 * One of two agents that compete: a process that is started again whenever it ends, behind a relay
 * of its own. A snare catches it in the middle of a request.
 */
import type { Child } from '#deploy/local/process/child.ts';
import { sendSignal } from '#deploy/local/process/kill.ts';
import { systemClock as clock } from '#shared/clock.ts';
import type { AgentWorld } from '#test/integration/agent-world.ts';
import { type ApiCall, type Decision, startApiProxy } from '#test/integration/api-proxy.ts';
import type { Moment } from './plan.ts';
import { type SideEffect, sideEffectOf } from './side-effects.ts';

const ELECTION = [
  '--leader-elect',
  '--leader-elect-lease-duration=3s',
  '--leader-elect-renew-deadline=2s',
  '--leader-elect-retry-period=500ms',
];
/** What a late request of a former leader makes is for the sweeper to find, soon. */
const SWEEPING = ['--gc-interval=5s', '--gc-min-age=5s'];
const CONFIG_EXIT_CODE = 2;
/** One that ends by itself is not started in a tight loop. */
const RESTART_MS = 200;

/** Gets a side effect at a moment; the request waits for what it decides. */
export type Snare = (
  effect: SideEffect,
  moment: Moment,
  call: ApiCall,
) => Decision | Promise<Decision>;

export interface Rival {
  readonly name: string;
  /** The process that runs or is frozen now; undefined between two. */
  readonly child: Child | undefined;
  /** Ends by themselves, by exit code. */
  readonly ownEnds: ReadonlyMap<number, number>;
  snare: Snare | undefined;
  /** Kills it; it is back after `restartMs`. */
  kill(restartMs: number): void;
  freeze(): void;
  thaw(): void;
  close(): Promise<void>;
}

/** `onEffect` is told each side effect that arrives, and is waited for. */
export async function startRival(
  world: AgentWorld,
  name: string,
  onEffect: (rival: string, effect: SideEffect, call: ApiCall) => Promise<void>,
): Promise<Rival> {
  const stopping = new AbortController();
  const ownEnds = new Map<number, number>();
  let child: Child | undefined;
  let restartMs: number | undefined;
  const snared = (call: ApiCall, moment: Moment) => {
    const effect = sideEffectOf(call);
    return effect === undefined ? undefined : rival.snare?.(effect, moment, call);
  };
  const relay = await startApiProxy(world.api, {
    async before(call) {
      const effect = sideEffectOf(call);
      if (effect !== undefined) await onEffect(name, effect, call);
      return snared(call, 'sent');
    },
    taken: (call) => snared(call, 'taken'),
    answered: (call) => void snared(call, 'answered'),
  });

  async function keepRunning(): Promise<void> {
    while (!stopping.signal.aborted) {
      restartMs = undefined;
      child = await world.startAgent(name, relay, [...ELECTION, ...SWEEPING]);
      const { exitCode } = await child.exited;
      child = undefined;
      if (restartMs === undefined && !stopping.signal.aborted) {
        ownEnds.set(exitCode, (ownEnds.get(exitCode) ?? 0) + 1);
        if (exitCode === CONFIG_EXIT_CODE) return;
      }
      await clock.sleep(restartMs ?? RESTART_MS, stopping.signal).catch(() => {});
    }
  }

  const signalTo = (signal: NodeJS.Signals) => {
    if (child !== undefined) sendSignal(child.pid, signal);
  };
  const rival: Rival = {
    name,
    get child() {
      return child;
    },
    ownEnds,
    snare: undefined,
    kill(afterMs) {
      restartMs = afterMs;
      signalTo('SIGKILL');
    },
    freeze: () => signalTo('SIGSTOP'),
    thaw: () => signalTo('SIGCONT'),
    async close() {
      stopping.abort();
      rival.snare = undefined;
      signalTo('SIGCONT');
      await child?.stop(5_000);
      await running;
      await relay.close();
    },
  };
  const running = keepRunning();
  return rival;
}
