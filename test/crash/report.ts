/** What runs are told and what they tell. */
import type { Fleet } from '#test/integration/fleet.ts';

export interface RunOptions {
  /** How often an agent is killed, or otherwise put out of action. */
  readonly kills: number;
  readonly seed: number;
  /** Ends the run early; it throws the reason. */
  readonly signal: AbortSignal;
  readonly onProgress: (line: string) => void;
}

export interface Report {
  /** What was done to the agents, for people. */
  readonly table: string;
  /** What users did meanwhile. */
  readonly fleet: Fleet['done'];
  /** Machines made, and of those the ones that ended by themselves. */
  readonly made: number;
  readonly died: number;
  /** What is not as it must be; empty when all is well. */
  readonly problems: readonly string[];
}
