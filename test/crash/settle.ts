/** The end of every run: users rest, nothing breaks any more, and all has to come out right. */
import { systemClock as clock } from '#shared/clock.ts';
import type { AgentWorld } from '#test/integration/agent-world.ts';
import type { Fleet } from '#test/integration/fleet.ts';
import type { MachineWatch } from '#test/integration/machine-watch.ts';

const SETTLE_MS_MAX = 90_000;
const POLL_MS = 200;
/** So often in a row all must be well: what is right for a moment may be on its way elsewhere. */
const CALM_POLLS = 10;
const DEATHS_SHOWN_MAX = 5;

export interface Settling {
  readonly world: Pick<AgentWorld, 'logTail'>;
  readonly machines: MachineWatch;
  readonly fleet: Fleet;
  /** Of the agents that run, as their logs are called. */
  readonly agents: readonly string[];
  /** Ends the wait; it throws the reason. */
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
}

/** Waits until nothing is missing; answers what is, and what was wrong at any time of the run. */
export async function settle(settling: Settling): Promise<string[]> {
  const { machines, fleet } = settling;
  const deadlineMs = clock.monotonicMs() + SETTLE_MS_MAX;
  let missing: string[] = [];
  let calm = 0;
  while (calm < CALM_POLLS && clock.monotonicMs() < deadlineMs) {
    missing = await machines.missing(fleet.living);
    calm = missing.length === 0 ? calm + 1 : 0;
    settling.onProgress(missing[0] === undefined ? 'all is well' : `waiting: ${missing[0]}`);
    await clock.sleep(POLL_MS, settling.signal);
  }
  if (missing.length > 0) {
    missing.unshift(`not settled after ${SETTLE_MS_MAX / 1000} s:`);
    for (const name of settling.agents) missing.push(...settling.world.logTail(name));
  }
  return [...machines.faults, ...tooMany(machines, fleet), ...missing];
}

/** A machine has a reason: a creation, an edit, or the death of the one before it. */
function tooMany({ made, dead }: MachineWatch, { asked, done }: Fleet): string[] {
  const problems: string[] = [];
  if (made > asked + dead.size) {
    problems.push(
      `${made} machines were made, for ${asked} creations and edits and ${dead.size} that died`,
    );
  }
  if (dead.size > done.kill) {
    const how = [...dead.values()].slice(-DEATHS_SHOWN_MAX);
    problems.push(`${dead.size} machines died, ${done.kill} were killed:`, ...how);
  }
  return problems;
}
