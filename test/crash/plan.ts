/** Which kills a run makes: every side effect at every moment, again and again, in changing order. */
import type { Random } from '#shared/clock.ts';
import { shuffled } from '#test/integration/seed.ts';
import { SIDE_EFFECTS, type SideEffect } from './side-effects.ts';

/** Before the server sees it; when the server took it and the agent does not know; after that. */
export const MOMENTS = ['sent', 'taken', 'answered'] as const;
export type Moment = (typeof MOMENTS)[number];

export interface Target {
  readonly effect: SideEffect;
  readonly moment: Moment;
}

export const TARGETS: readonly Target[] = SIDE_EFFECTS.flatMap((effect) =>
  MOMENTS.map((moment) => ({ effect, moment })),
);

/** The targets of `kills` kills; from `TARGETS.length` kills on, each is there. */
export function planKills(kills: number, random: Random): Target[] {
  const plan: Target[] = [];
  while (plan.length < kills) plan.push(...shuffled(random, TARGETS));
  return plan.slice(0, kills);
}

/** Counts of kills as a table: a line for each side effect, a column for each moment. */
export function coverageTable(kills: readonly Target[]): string {
  const width = Math.max(...SIDE_EFFECTS.map((effect) => effect.length));
  const row = (head: string, cells: readonly string[]) =>
    [head.padEnd(width), ...cells.map((cell) => cell.padStart(9))].join(' ');
  const count = (effect: SideEffect, moment: Moment) =>
    kills.filter((kill) => kill.effect === effect && kill.moment === moment).length;
  const lines = SIDE_EFFECTS.map((effect) =>
    row(
      effect,
      MOMENTS.map((moment) => String(count(effect, moment))),
    ),
  );
  return [row('killed when', MOMENTS), ...lines].join('\n');
}
