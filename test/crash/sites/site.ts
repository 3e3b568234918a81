/** Where the machines of a run are: what of it depends on the provider. */
import type { JsonObject } from '#deploy/local/control-plane/json.ts';
import type { KubeClient } from '#deploy/local/kube/client.ts';
import type { AgentWorld } from '#test/integration/agent-world.ts';
import type { Act } from '#test/integration/fleet.ts';
import type { MachineWatch } from '#test/integration/machine-watch.ts';
import type { Moment } from '../plan.ts';
import type { SideEffect } from '../side-effects.ts';

/** Asked at each side effect; `drop` when the agent is dead now, or is about to be. */
export type Strike = (effect: SideEffect | undefined, moment: Moment) => 'drop' | undefined;

export interface Site {
  /** All that an agent changes, at the API server and at the backend. */
  readonly effects: readonly SideEffect[];
  /** What users do to make those of the backend happen soon. */
  readonly causes: Readonly<Partial<Record<SideEffect, readonly Act[]>>>;
  /** Of the providers file. */
  readonly providers: readonly JsonObject[];
  /** A managed proxy of that name that listens on that port. */
  specOf(name: string, port: number): JsonObject;
  /** Side effects that do not go through the API server are told to `strike` from now on. */
  intercept(strike: Strike): void;
  watch(kube: KubeClient): MachineWatch;
  /** A machine dies; answers whether it was there. */
  kill(world: AgentWorld, machine: string): boolean;
  close(): Promise<void>;
}
