/** Which kills a run makes: every side effect at every moment, again and again, in changing order. */
import type { Random } from '#shared/clock.ts';
import { shuffled } from '#test/integration/seed.ts';
import type { SideEffect } from './side-effects.ts';

/** Before the server sees it; when the server took it and the agent does not know; after that. */
export const MOMENTS = ['sent', 'taken', 'answered'] as const;
export type Moment = (typeof MOMENTS)[number];

export interface Target {
  readonly effect: SideEffect;
  readonly moment: Moment;
}

/** Each effect at each moment. */
export function targetsOf(effects: readonly SideEffect[]): Target[] {
  return effects.flatMap((effect) => MOMENTS.map((moment) => ({ effect, moment })));
}

/** The targets of `kills` kills, by turns; when there are enough, each is among them. */
export function planKills(kills: number, targets: readonly Target[], random: Random): Target[] {
  const plan: Target[] = [];
  while (plan.length < kills) plan.push(...shuffled(random, targets));
  return plan.slice(0, kills);
}

/** Counts of kills as a table: a line for each side effect, a column for each moment. */
export function coverageTable(kills: readonly Target[]): string {
  const effects = [...new Set(kills.map(({ effect }) => effect))].sort();
  const width = Math.max(...effects.map((effect) => effect.length));
  const row = (head: string, cells: readonly string[]) =>
    [head.padEnd(width), ...cells.map((cell) => cell.padStart(9))].join(' ');
  const count = (effect: SideEffect, moment: Moment) =>
    kills.filter((kill) => kill.effect === effect && kill.moment === moment).length;
  const lines = effects.map((effect) =>
    row(
      effect,
      MOMENTS.map((moment) => String(count(effect, moment))),
    ),
  );
  return [row('killed when', MOMENTS), ...lines].join('\n');
}
